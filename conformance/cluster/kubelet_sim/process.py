"""A process of the cluster, next to KWOK, for behavior that a stage cannot express because a stage sees only one
object.

It watches the pods on nodes and ends the init containers that wait for other pods, by the rules in `init_wait`: the
stage pod-starts holds such a pod back until its status says Initialized, which this process writes. It also makes nodes
fail (`failed_nodes`), starts the containers of pods with ResourceClaims (`prepared_claims`), publishes the devices of
nodes (`device_publisher`), and serves ComputeDomains (`domain_driver`). Other pods and nodes cost it only a comparison,
and cost the API server nothing. On clusters of the suite, it also creates the volumes of claims (`addons.provisioner`),
serves metrics if the cluster has them (`addons.metrics`, `addons.gpu_metrics_server`), and creates the objects of
policies in each namespace (`addons.namespace_objects`).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from conformance.cluster import users
from conformance.cluster.addons.namespace_objects import NamespaceObjects
from conformance.cluster.addons.provisioner import Provisioner
from conformance.cluster.kubelet_sim import init_wait, status
from conformance.cluster.kubelet_sim.device_publisher import DOMAIN_DRIVER, GPU_DRIVER, DevicePublisher
from conformance.cluster.kubelet_sim.domain_driver import DomainDriver
from conformance.cluster.kubelet_sim.failed_nodes import FailedNodes
from conformance.cluster.kubelet_sim.init_wait import SimulatedPod
from conformance.cluster.kubelet_sim.prepared_claims import PreparedClaims
from grove_conformance import start
from kube import config
from kube.client import Client
from kube.config import Connection
from kube.informer import Informer, typed_decoder
from kube.objects import Key
from kube.resource import PODS
from kube.workqueue import WorkQueue, work

COMPONENT = "startup-order"
_WRITERS = 8

Gang = tuple[str, str]
"""Namespace and name."""


def command(server: str, pki: Path, metrics: tuple[int, int], objects: Path | None = None) -> list[str]:
    """Return the command line of the process. `pki` is the folder with the administrator's certificate, `metrics` the
    ports on which the process serves metrics and those of GPUs (0 for none), and `objects` a file with the objects of
    each namespace."""
    arguments = [server, str(pki), *map(str, metrics), *([str(objects)] if objects else [])]
    return start.command("conformance.cluster.kubelet_sim.process", *arguments)


def command_for_other_cluster(kubeconfig: Path) -> list[str]:
    """Return the command line of the process for a cluster that the suite has not started."""
    return start.command("conformance.cluster.kubelet_sim.process", str(kubeconfig))


class GangReadiness:
    """The Ready pods of each gang, the gang's waiting pods, and the waits that are over. A change to a pod costs
    constant time, unless a pod in its gang waits."""

    def __init__(self, write: Callable[[Key], None]) -> None:
        """`write` is called with the key of a pod whose status may have to change."""
        self._write = write
        self._ready: defaultdict[Gang, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._waiting: defaultdict[Gang, dict[str, SimulatedPod]] = defaultdict(dict)
        self._finished_by_uid: dict[str, set[str]] = {}

    def on_pod(self, event_type: str, old: SimulatedPod | None, pod: SimulatedPod) -> None:
        """Process a pod event from the informer."""
        if old is not None:
            self._forget(old)
        if event_type == "DELETED":
            self._forget(pod)
            self._finished_by_uid.pop(pod.metadata.uid, None)
        else:
            if pod.is_ready:
                self._ready[pod.gang][pod.clique].add(pod.metadata.uid)
            if pod.is_waiting:
                self._waiting[pod.gang][pod.metadata.uid] = pod
            else:
                self._finished_by_uid.pop(pod.metadata.uid, None)
        for gang in {pod.gang, *([old.gang] if old is not None else [])}:
            self._finish_waits(gang)

    def finished_waits(self, pod: SimulatedPod) -> set[str]:
        """Return the waiting init containers of a pod whose wait is over."""
        return self._finished_by_uid.get(pod.metadata.uid, set()) | init_wait.completed_containers(pod)

    def _forget(self, pod: SimulatedPod) -> None:
        gang = pod.gang
        cliques = self._ready.get(gang)
        if cliques is not None and pod.clique in cliques:
            cliques[pod.clique].discard(pod.metadata.uid)
            if not cliques[pod.clique]:
                del cliques[pod.clique]
                if not cliques:
                    del self._ready[gang]
        if gang in self._waiting:
            self._waiting[gang].pop(pod.metadata.uid, None)
            if not self._waiting[gang]:
                del self._waiting[gang]

    def _finish_waits(self, gang: Gang) -> None:
        """End the waits of a gang whose condition holds now. The waits do not start again if pods are lost later."""
        cliques: Mapping[str, set[str]] = self._ready.get(gang, {})
        for uid, pod in self._waiting.get(gang, {}).items():
            finished = init_wait.finished_waits(pod, lambda clique: len(cliques.get(clique, ())))
            self._finished_by_uid.setdefault(uid, set()).update(finished)
            self._write(pod.metadata.key)


async def run(client: Client, *, of_suite: bool, objects: Sequence[Mapping[str, Any]] = ()) -> None:
    """Simulate until cancelled. `of_suite`: the cluster was started by the suite. `objects` are the objects of each
    namespace."""
    queue: WorkQueue[Key] = WorkQueue()
    pods = Informer(client, PODS, typed_decoder(SimulatedPod), field_selector="spec.nodeName!=")
    readiness = GangReadiness(queue.add)
    pods.add_handler(readiness.on_pod)
    failed_nodes = FailedNodes(client, pods)
    prepared_claims = PreparedClaims(client, pods)
    domains = DomainDriver(client, pods, failed_nodes.nodes, prepared_claims)
    publishers = [DevicePublisher(client, failed_nodes.nodes, driver) for driver in (GPU_DRIVER, DOMAIN_DRIVER)]

    async def write(key: Key) -> float | None:
        pod = pods.get(*key)
        if pod is None or not pod.is_waiting:
            return None
        patch = init_wait.status_patch(pod, readiness.finished_waits(pod), status.now())
        if patch is not None:
            await status.patch_status(client, pods, pod, patch)
        return None

    async with asyncio.TaskGroup() as group:
        group.create_task(pods.run())
        await pods.wait_until_synced()
        group.create_task(work(queue, write, _WRITERS))
        group.create_task(failed_nodes.run())
        group.create_task(prepared_claims.run())
        group.create_task(domains.run())
        for publisher in publishers:
            group.create_task(publisher.run())
        if of_suite:
            group.create_task(Provisioner(client).run())
        if objects:
            group.create_task(NamespaceObjects(client, objects).run())


def administrator_connection(server: str, pki: Path) -> Connection:
    """Return an administrator's connection to a cluster of the suite."""
    tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return Connection(server, tls, lambda: None)


async def main(server: str, pki: Path, port: int, gpu_port: int, objects: Sequence[Mapping[str, Any]] = ()) -> None:
    """Run the process for a cluster of the suite until it is stopped."""
    async with Client(administrator_connection(server, pki), user_agent=COMPONENT) as client:
        if not port:
            await run(client, of_suite=True, objects=objects)
            return
        from conformance.cluster.addons import gpu_metrics_server, metrics  # slow to import, rarely needed

        async with metrics.serve(client, port, pki, users.COMPONENT), gpu_metrics_server.serve(client, gpu_port):
            await run(client, of_suite=True, objects=objects)


async def main_for_other_cluster(connection: Connection) -> None:
    """Run the process for another cluster until it is stopped."""
    async with Client(connection, user_agent=COMPONENT) as client:
        await run(client, of_suite=False)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    target, arguments = sys.argv[1], sys.argv[2:]
    namespace_objects = yaml.safe_load(Path(arguments[3]).read_text("utf-8"))["objects"] if arguments[3:] else ()
    asyncio.run(
        main(target, Path(arguments[0]), int(arguments[1]), int(arguments[2]), namespace_objects)
        if arguments
        else main_for_other_cluster(config.load(target))
    )
