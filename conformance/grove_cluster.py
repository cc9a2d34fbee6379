"""A fake cluster for the tests of others: nodes, behaviors of pods and node failures as methods, and the official
client (docs/pytest.md)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from kubernetes import config
from kubernetes.client import ApiClient, CoreV1Api

from conformance.cluster import fleets, nodes, pod_behaviors
from conformance.cluster.controlplane import Cluster
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.cluster.progress import Report, silent
from conformance.cluster.settings import DEFAULT_SCHEDULER, ClusterSettings
from conformance.implementation import deployment, scheduler_names
from conformance.implementation.parameters import assignments
from kube.client import Client

T = TypeVar("T")

EVERY = 0.2
"""Seconds between two looks of `wait_for`."""


class GroveCluster:
    """A cluster that is running. It ends with `down`, with the context, or with this process."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.client: ApiClient = config.new_client_from_config(str(cluster.kubeconfig))  # type: ignore[no-untyped-call]
        """The official client, as an administrator."""
        self._core: Any = CoreV1Api(self.client)

    @classmethod
    def up(cls, implementation: str = "reference", settings: Iterable[str] = (), report: Report = silent) -> Self:
        """Start a cluster, and an implementation on it: by the name or path of its descriptor, with NAME=VALUE for its
        parameters; an empty name starts none. Raises UsageError, HarnessError."""
        playing = deployment.load(implementation, assignments(settings, "--grove-set")) if implementation else None
        name = scheduler_names.kube_scheduler(*playing) if playing else DEFAULT_SCHEDULER
        unique = f"pytest-{os.getpid()}-{secrets.token_hex(2)}"
        cluster = Cluster.up(unique, settings=ClusterSettings(scheduler_name=name), owner=True, report=report)
        try:
            if playing:
                deployment.start(cluster, *playing, report)
            return cls(cluster)
        except BaseException:
            cluster.down()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def down(self) -> None:
        """End the cluster and everything on it. Safe to call again."""
        self.client.close()  # type: ignore[no-untyped-call]
        self._cluster.down()

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

    def add_nodes(self, wanted: str) -> list[str]:
        """Add nodes, such as `dgx-h100:4` or `gb200-nvl72:2racks`, and return their names once pods can be bound to
        them. Nodes that exist are a mistake. Raises UsageError."""
        manifests = fleets.asked(wanted)
        names = [manifest["metadata"]["name"] for manifest in manifests]

        async def make() -> None:
            async with Client.from_kubeconfig(self.kubeconfig, user_agent="grove-conformance") as client:
                await nodes.provide(client, manifests)

        asyncio.run(make())
        return names

    def remove_nodes(self, names: Iterable[str]) -> None:
        """Delete nodes. Kubernetes deletes the pods that were bound to them."""
        for name in names:
            self._core.delete_node(name)

    def fail_node(self, name: str) -> None:
        """Take the kubelet of a node away, and return when the node is no longer Ready (docs/fake-cluster.md)."""
        self._label_lost(name, "yes")
        self.wait_for(f"node {name} is not Ready", lambda: self._ready(name) == "Unknown")

    def recover_node(self, name: str) -> None:
        """Give a node its kubelet back, and return when it is Ready."""
        self._label_lost(name, None)
        self.wait_for(f"node {name} is Ready", lambda: self._ready(name) == "True")

    def behavior(self, name: str, **parameters: str | int) -> dict[str, str]:
        """Return the annotations that give a pod, or the pods of a clique, a behavior: `behavior("crash-loop",
        restart_after="2s", restarts=3)`. Raises UsageError for what is unknown."""
        return pod_behaviors.annotated(name, **parameters)

    @contextlib.contextmanager
    def namespace(self, prefix: str = "test") -> Iterator[str]:
        """Create a namespace, and return its name; it is deleted at the end of the context, without waiting."""
        name: str = self._core.create_namespace({"metadata": {"generateName": f"{prefix}-"}}).metadata.name
        try:
            yield name
        finally:
            self._core.delete_namespace(name)

    def wait_for(self, what: str, condition: Callable[[], T], timeout: float = 60.0) -> T:
        """Return the first true value of `condition`, which is called again and again. Raises TimeoutError, with the
        last value, if none comes within `timeout` seconds."""
        end = time.monotonic() + timeout
        while not (value := condition()):
            if time.monotonic() > end:
                raise TimeoutError(f"not seen within {timeout:g} s: {what}; last seen: {value!r}")
            time.sleep(EVERY)
        return value

    def _label_lost(self, node: str, value: str | None) -> None:
        self._core.patch_node(node, {"metadata": {"labels": {LOST: value}}})

    def _ready(self, node: str) -> str:
        conditions: list[Any] = self._core.read_node(node).status.conditions or []
        return next((condition.status for condition in conditions if condition.type == "Ready"), "")
