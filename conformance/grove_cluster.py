"""A fake cluster for other projects' tests, with methods for nodes, pod behaviors and node failures, and the official
client (docs/pytest.md)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from conformance.cluster import fleet_creation, fleets, gpu_devices, gpu_failures, gpu_occupancy, pod_behaviors
from conformance.cluster.controlplane import Cluster
from conformance.cluster.gpu_devices import DeviceFailure
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.cluster.progress import ProgressReporter, report_nothing
from conformance.cluster.settings import ClusterSettings
from conformance.documents import suggestion
from conformance.errors import HarnessError, UsageError
from conformance.grove.kinds import DEFAULT_SCHEDULER
from conformance.implementation import deployment, scheduler_names
from conformance.implementation.parameters import assignments
from kube.client import Client
from kube.resource import NODES

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

T = TypeVar("T")
P = ParamSpec("P")

POLL_INTERVAL_SECONDS = 0.2
"""Seconds between two polls of `wait_for`."""


def _hide_frames(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method so that a failed call shows only the caller's line and the message: the frames below the call
    are irrelevant to the test's author."""

    @functools.wraps(method)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        __tracebackhide__ = True
        try:
            return method(*arguments, **options)
        except (UsageError, HarnessError, TimeoutError) as error:
            raise error.with_traceback(None) from None

    return call


class GroveCluster:
    """A running cluster. It is deleted by `down`, at the end of the context, or with this process, unless it is
    kept."""

    def __init__(self, cluster: Cluster) -> None:
        from kubernetes import config  # importing its models takes a second of CPU time
        from kubernetes.client import CoreV1Api

        self._cluster = cluster
        self.added_nodes: list[str] = []
        """The nodes that were added and not removed since the current test or fixture started; FixturePlugin replaces
        the list for each fixture."""
        self.namespaces: list[str] = []
        """The namespaces in use."""
        self.is_kept, self.is_down = False, False
        self.client: ApiClient = config.new_client_from_config(str(cluster.kubeconfig))  # type: ignore[no-untyped-call]
        """The official Kubernetes client, with administrator rights."""
        self._core: Any = CoreV1Api(self.client)

    @classmethod
    def up(
        cls, implementation: str = "reference", settings: Iterable[str] = (), report: ProgressReporter = report_nothing
    ) -> Self:
        """Start a cluster and an implementation on it. `implementation` is the name or path of a descriptor, or empty
        to start none; `settings` are NAME=VALUE assignments of its parameters. Raises UsageError if an argument is
        invalid, or HarnessError if the cluster or the implementation does not start."""
        options = ("--grove-implementation", "--grove-set")
        values = assignments(settings, options[1])
        descriptors = deployment.load(implementation, values, options=options) if implementation else None
        name = scheduler_names.kube_scheduler_name(*descriptors) if descriptors else DEFAULT_SCHEDULER
        unique = f"pytest-{os.getpid()}-{secrets.token_hex(2)}"
        cluster = Cluster.up(
            unique, settings=ClusterSettings(scheduler_name=name, addons=True), owner=True, report=report
        )
        try:
            if descriptors:
                deployment.start(cluster, *descriptors, report)
            return cls(cluster)
        except BaseException:
            cluster.down()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.down()

    def down(self) -> None:
        """Delete the cluster and everything on it, unless it is kept. Safe to call more than once."""
        self.client.close()  # type: ignore[no-untyped-call]
        self.is_down = True
        if not self.is_kept:
            self._cluster.down()

    def keep(self) -> None:
        """Let the cluster outlive this process in its current state: only `grove-conformance cluster down NAME` deletes
        it."""
        if not self.is_kept:
            self.is_kept = True
            self._cluster.release()

    @property
    def kubeconfig(self) -> Path:
        """Return the path of an administrator's kubeconfig, for programs that read KUBECONFIG."""
        return self._cluster.kubeconfig

    @property
    def name(self) -> str:
        """Return the name of the cluster, as `grove-conformance cluster list` shows it."""
        return self._cluster.name

    @property
    def logs(self) -> Path:
        """Return the folder with the logs of the implementation."""
        return self._cluster.directory / "logs"

    def all_logs(self) -> dict[str, Path]:
        """Return the logs of the implementation's processes by name, and the logs of the cluster's components as
        `cluster/NAME`."""
        monitor = self._cluster.monitor
        own_logs = {path.stem: path for path in sorted(self.logs.glob("*.log"))}
        return own_logs | {f"cluster/{name}": monitor.log(name) for name in monitor.components()}

    @_hide_frames
    def add_nodes(self, request: str, gpus: gpu_devices.Form = "extended") -> list[str]:
        """Add nodes, such as `dgx-h100:4` or `gb200-nvl72:2racks`, and return their names once pods can be bound to
        them. The nodes get the first free names, and racks are always complete new racks. `gpus` is the form in which
        they offer their GPUs. Raises UsageError if the request is invalid or a node is rejected."""

        async def grow() -> list[str]:
            async with Client.from_kubeconfig(self.kubeconfig, user_agent="grove-conformance") as client:
                existing = {node["metadata"]["name"] for node in await client.list(NODES)}
                manifests = fleets.requested_nodes(request, used_names=existing, location="add_nodes")
                names = [manifest["metadata"]["name"] for manifest in manifests]
                self.added_nodes += (
                    names  # before they are Ready, so that nodes that never become Ready are removed as well
                )
                manifests = gpu_occupancy.with_occupancy(gpu_devices.offered(manifests, gpus), "")
                classes = fleets.requested_classes(request, location="add_nodes")
                await fleet_creation.create(client, manifests, classes, location="add_nodes")
                return names

        return asyncio.run(grow())

    @_hide_frames
    def remove_nodes(self, names: Iterable[str]) -> None:
        """Delete nodes. Kubernetes deletes the pods that were bound to them. Raises UsageError if a node does not
        exist."""
        if isinstance(names, str):
            raise UsageError("takes a list of names", where="remove_nodes", hint=f"write remove_nodes([{names!r}])")
        node_names = list(names)
        self._require_nodes("remove_nodes", node_names)
        for name in node_names:
            self._core.delete_node(name)
        self.added_nodes[:] = [name for name in self.added_nodes if name not in node_names]

    def discard(self, names: list[str]) -> None:
        """Delete the nodes that still exist, and the pods on them, so that a later node of the same name does not
        inherit the pods. Do nothing on a cluster that is kept or has been deleted."""
        if self.is_kept or self.is_down:
            return
        for name in names:
            with _unless_deleted():
                self._core.delete_node(name)
            for pod in self._core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={name}").items:
                with _unless_deleted():
                    self._core.delete_namespaced_pod(pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0)
        names.clear()

    @_hide_frames
    def fail_node(self, name: str) -> None:
        """Stop the simulated kubelet of a node, and return when the node is no longer Ready (docs/fake-cluster.md).
        Raises UsageError if the node does not exist."""
        self._require_nodes("fail_node", [name])
        self._label_lost(name, "yes")
        self.wait_for(f"node {name} is not Ready", lambda: self._ready_status(name) == "Unknown")

    @_hide_frames
    def recover_node(self, name: str) -> None:
        """Start the simulated kubelet of a node again, and return when the node is Ready. Raises UsageError if the node
        does not exist."""
        self._require_nodes("recover_node", [name])
        self._label_lost(name, None)
        self.wait_for(f"node {name} is Ready", lambda: self._ready_status(name) == "True")

    @_hide_frames
    def fail_gpu(self, node: str, device: str, xid: int = 79, drain: bool = False) -> None:
        """Make a device of a node fail, and return when its slice says so: the device is not allocated any more, and
        with `drain`, the pods that use it are evicted. Raises UsageError if there is no such device."""
        self._change_gpu(node, device, DeviceFailure(xid, drain), "fail_gpu")

    @_hide_frames
    def repair_gpu(self, node: str, device: str) -> None:
        """Repair a device that has failed, and return when its slice says so. Raises UsageError if there is no such
        device."""
        self._change_gpu(node, device, None, "repair_gpu")

    @_hide_frames
    def behavior(self, name: str, **parameters: str | int) -> dict[str, str]:
        """Return the annotations that give a pod, or the pods of a clique, a behavior: `behavior("crash-loop",
        restart_after="2s", restarts=3)`. Raises UsageError for an unknown behavior or parameter."""
        return pod_behaviors.behavior_annotations(name, **parameters)

    @contextlib.contextmanager
    def namespace(self, prefix: str = "test") -> Iterator[str]:
        """Create a namespace and yield its name. At the end of the context, delete the namespace without waiting."""
        name: str = self._core.create_namespace({"metadata": {"generateName": f"{prefix}-"}}).metadata.name
        self.namespaces.append(name)
        try:
            yield name
        finally:
            self.namespaces.remove(name)
            if not self.is_kept:
                with _unless_deleted():
                    self._core.delete_namespace(name)

    @_hide_frames
    def wait_for(self, description: str, condition: Callable[[], T], timeout: float = 60.0) -> T:
        """Poll `condition` and return its first true value. Raises TimeoutError, with the last value, if there is none
        within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not seen within {timeout:g} s: {description}; last seen: {value!r}")
            time.sleep(POLL_INTERVAL_SECONDS)
        return value

    def _require_nodes(self, location: str, names: Iterable[str]) -> None:
        """Raise UsageError unless all these nodes exist."""
        existing_names = [node.metadata.name for node in self._core.list_node().items]
        for name in names:
            if name not in existing_names:
                hint = suggestion(name, existing_names) if existing_names else "add_nodes adds some"
                raise UsageError(f"unknown node {name!r}", where=location, hint=hint)

    def _change_gpu(self, node: str, device: str, failure: DeviceFailure | None, location: str) -> None:
        async def change() -> None:
            async with Client.from_kubeconfig(self.kubeconfig, user_agent="grove-conformance") as client:
                await gpu_failures.change(client, node, device, failure, location=location)

        asyncio.run(change())

    def _label_lost(self, node: str, value: str | None) -> None:
        self._core.patch_node(node, {"metadata": {"labels": {LOST: value}}})

    def _ready_status(self, node: str) -> str:
        conditions: list[Any] = self._core.read_node(node).status.conditions or []
        return next((condition.status for condition in conditions if condition.type == "Ready"), "")


@contextlib.contextmanager
def _unless_deleted() -> Iterator[None]:
    """Ignore the error that an object no longer exists."""
    from kubernetes.client import ApiException

    try:
        yield
    except ApiException as error:
        if error.status != 404:
            raise
