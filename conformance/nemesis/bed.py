"""A cluster with an implementation whose roles reach the API server through proxies, and with a recorder that reaches
it directly."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import orjson

from conformance.cluster import kubeconfigs, nodes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.progress import ProgressReporter
from conformance.cluster.settings import ClusterSettings
from conformance.errors import UsageError
from conformance.history.query import History
from conformance.history.recorder import Recorder
from conformance.implementation import scheduler_names
from conformance.implementation.additions import with_additions
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.driver import Driver
from conformance.nemesis.proxy.front import proxy_in_front
from conformance.nemesis.proxy.interference import Interference
from conformance.nemesis.proxy.server import Proxy
from conformance.suite.scenes.api import Api, Loop
from conformance.suite.session import watched
from kube.client import Client
from kube.resource import NAMESPACES

TESTBED_NODES = ("dgx-h100", 4)
"""Profile and number of the nodes. They have room for a new set while another set is still being deleted."""


LEASE_NAMESPACE = "default"
"""Namespace of the Lease of two candidates. It is not the namespace of a scenario, in which every write is a fault
point."""


class FaultTestbed:
    """A cluster on which plans are run. The synchronous methods block; `restart` may be called from another thread
    while a plan waits."""

    def __init__(self, cluster: Cluster, driver: Driver, role: Role, proxy: Proxy, loop: Loop, api: Api) -> None:
        self.cluster, self.driver, self.role, self.proxy, self.api = cluster, driver, role, proxy, api
        self.loop = loop
        self.abandoned = threading.Event()
        """Set when the result of the running plan is not needed any more."""
        self._driver_lock = threading.Lock()
        self.recorder: Recorder

    @property
    def descriptor(self) -> Descriptor:
        """Return the descriptor of the judged implementation."""
        return self.driver.descriptor

    def set_interference(self, interference: Interference) -> None:
        """Pass all requests and events of the proxy through another interference from now on."""
        self.proxy.interference = interference

    async def kill(self) -> None:
        """Kill the processes of the role. Called in the proxy's event loop."""
        await asyncio.get_running_loop().run_in_executor(None, self._call_driver, self.driver.kill)

    async def start(self) -> None:
        """Start the processes of the role. Called in the proxy's event loop. Raises NotStarted if a process does not
        become ready."""
        await asyncio.get_running_loop().run_in_executor(None, self._call_driver, self.driver.start)

    def restart(self) -> None:
        """Stop the role and start it again. Raises NotStarted if a process does not become ready."""
        with self._driver_lock:
            self.driver.restart(self.role)

    def _call_driver(self, action: Callable[[Role], None]) -> None:
        with self._driver_lock:
            action(self.role)

    # -- several operators ---------------------------------------------------------------------------------------

    @contextmanager
    def two_candidates(self) -> Iterator[None]:
        """Run two operators, one of which holds the Lease and leads. Afterwards there is one operator without leader
        election. Raises NotStarted if an operator does not become ready."""
        with self._one_operator_afterwards():
            with self._driver_lock:
                self.driver.operators.enable_leader_election(LEASE_NAMESPACE)
                self.driver.operators.add_second()
            yield

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Stop the processes of the role with SIGSTOP, and let them continue afterwards. If there are two operators,
        stop the first one."""
        groups = list(self.driver.pids(self.role).values())

        def send_signal(number: signal.Signals) -> None:
            for group in groups:
                with suppress(ProcessLookupError):
                    os.killpg(group, number)

        send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            send_signal(signal.SIGCONT)

    # -- versions ------------------------------------------------------------------------------------------------

    @contextmanager
    def earlier_operator(self) -> Iterator[None]:
        """Run an earlier version of the operator until `upgrade` is called. Afterwards the judged version runs in any
        case. Raises NotStarted if an operator does not become ready."""
        judged = self.driver.descriptor
        with self._one_operator_afterwards():
            with self._driver_lock:
                self.driver.operators.replace_operator(judged.earlier(judged.upgrades[0]))
            yield

    @contextmanager
    def _one_operator_afterwards(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._driver_lock:
                self.driver.operators.reset()
                self.driver.start(Role.OPERATOR)

    def upgrade(self) -> None:
        """Replace the earlier operator with the judged one. Raises NotStarted if the judged operator does not become
        ready."""
        with self._driver_lock:
            self.driver.operators.replace_operator(self.driver.descriptor)

    def revision(self) -> str:
        """Return the API server's current resource version."""
        response = self.api.work(lambda client: client.request("GET", NAMESPACES.path(), params={"limit": "1"}))
        return str(orjson.loads(response)["metadata"]["resourceVersion"])

    def manifest(self, scenario_manifest: Mapping[str, Any], namespace: str) -> dict[str, Any]:
        """Return a set as it is sent to the API server: in its namespace, and with the additions of the descriptor."""
        manifest = with_additions(self.descriptor, dict(scenario_manifest))
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}

    @contextmanager
    def namespace(self, name: str) -> Iterator[History]:
        """Create a namespace and record it. Afterwards delete it, without waiting until it is gone."""
        self.recorder.open(name)
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        try:
            yield History(self.recorder, name)
        finally:
            self.api.delete("namespaces", None, [name])
            self.recorder.forget(name)


@contextmanager
def open_testbed(
    judged: Descriptor, supplied: Descriptor | None, role: Role, report: ProgressReporter, *, kubernetes: str = ""
) -> Iterator[FaultTestbed]:
    """Start a cluster, a proxy for `role`, the implementation, and a recorder. Raises UsageError if the role does not
    use the proxy, or HarnessError if something does not start."""
    with ExitStack() as stack:
        settings = ClusterSettings(
            scheduler_name=scheduler_names.kube_scheduler_name(judged, supplied), kubernetes=kubernetes
        )
        name = f"nemesis-{secrets.token_hex(3)}"
        cluster = Cluster.up(name, settings=settings, owner=True, report=report)
        stack.callback(cluster.down)
        asyncio.run(_create_nodes(cluster))
        loop = Loop()
        stack.callback(loop.close)
        proxy, facts = stack.enter_context(proxy_in_front(cluster, role, loop))
        driver = Driver(judged, facts, supplied)
        stack.callback(driver.stop)
        report(judged.name, "installing what it needs")
        driver.install()
        cluster.learn_new_kinds()
        report(judged.name, "starting")
        driver.start()
        if not proxy.request_count:
            raise UsageError(
                f"the {role} is ready and has sent nothing through the proxy",
                where=judged.document.location("processes", role),
                hint="it must use the server and the certificate authority of ${kubeconfig}, and speak HTTP/1.1",
            )
        api = Api(loop, kubeconfigs.suite_kubeconfig(cluster), "grove-conformance/nemesis")
        stack.callback(api.close)
        testbed = FaultTestbed(cluster, driver, role, proxy, loop, api)
        testbed.recorder = Recorder(
            kubeconfigs.suite_kubeconfig(cluster), "grove-conformance/recorder", watched.resources(judged, api)
        )
        stack.callback(testbed.recorder.stop)
        testbed.recorder.start()
        yield testbed


@contextmanager
def open_testbeds(
    count: int,
    judged: Descriptor,
    supplied: Descriptor | None,
    role: Role,
    report: ProgressReporter,
    kubernetes: str = "",
) -> Iterator[list[FaultTestbed]]:
    """Start several testbeds at the same time. Raises the same exceptions as `open_testbed`."""
    with ExitStack() as stack, ThreadPoolExecutor(count, "bed") as pool:

        def start() -> FaultTestbed:
            context = open_testbed(judged, supplied, role, report, kubernetes=kubernetes)
            testbed = context.__enter__()
            stack.push(context)
            return testbed

        futures = [pool.submit(start) for _ in range(count)]
        yield [future.result() for future in futures]


async def _create_nodes(cluster: Cluster) -> None:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="grove-conformance") as client:
        await nodes.create_schedulable_nodes(client, nodes.manifests(*TESTBED_NODES))
