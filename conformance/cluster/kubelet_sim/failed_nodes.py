"""Makes nodes fail and recover according to their label, by the pure rules in `node_failure`. Part of the process
`startup-order`."""

from __future__ import annotations

import asyncio

from conformance.cluster.kubelet_sim import node_failure, status
from conformance.cluster.kubelet_sim.init_wait import SimulatedPod
from conformance.cluster.kubelet_sim.node_failure import SimulatedNode
from kube.client import Client
from kube.informer import Informer, typed_decoder
from kube.resource import NODES
from kube.workqueue import WorkQueue, work

_FAILED_INDEX = "marked"


class FailedNodes:
    """Nodes that fail or recover. A change to a pod costs constant time, unless the pod's node has failed."""

    def __init__(self, client: Client, pods: Informer[SimulatedPod]) -> None:
        """Must be called before `pods` runs."""
        self._client, self._pods = client, pods
        self.nodes = Informer(client, NODES, typed_decoder(SimulatedNode))
        self.nodes.add_handler(self._on_node)
        self._queue: WorkQueue[str] = WorkQueue()
        pods.add_handler(self._on_pod)
        pods.add_index(_FAILED_INDEX, lambda pod: [pod.spec.node_name] if pod.is_lost else [])

    async def run(self) -> None:
        """Simulate node failures until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.nodes.run())
            group.create_task(work(self._queue, self._write, 1))

    def _on_node(self, event_type: str, old: SimulatedNode | None, node: SimulatedNode) -> None:
        name = node.metadata.name
        if event_type != "DELETED" and (node.is_lost or self._pods.indexed(_FAILED_INDEX, name)):
            self._queue.add(name)

    def _on_pod(self, event_type: str, old: SimulatedPod | None, pod: SimulatedPod) -> None:
        node = self.nodes.get("", pod.spec.node_name)
        if (
            event_type != "DELETED"
            and node is not None
            and (pod.is_lost != node.is_lost or (node.is_lost and pod.is_ready))
        ):
            self._queue.add(pod.spec.node_name)

    async def _write(self, name: str) -> float | None:
        node = self.nodes.get("", name)
        if node is None:
            return None
        pods = [pod for pod in self._pods if pod.spec.node_name == name]
        patches = [(pod, patch) for pod in pods if (patch := node_failure.pod_patch(pod, node.is_lost, status.now()))]
        await asyncio.gather(*(status.patch_status(self._client, self._pods, pod, patch) for pod, patch in patches))
        patch = node_failure.node_patch(node, status.now())
        if patch is not None:  # last, because clients that see it rely on the statuses of the pods
            await status.patch_status(self._client, self.nodes, node, patch)
        return None
