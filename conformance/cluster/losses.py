"""Has nodes lost, and back, as their annotation says (the rules, pure: `loss`). Part of the process `startup`."""

from __future__ import annotations

import asyncio

import msgspec

from conformance.cluster import loss, status
from conformance.cluster.init_wait import Pod
from conformance.cluster.loss import LEASES_OF_NODES, Lease, Node
from kube.client import MERGE_PATCH, Client
from kube.errors import ApiError
from kube.informer import Informer, typed
from kube.resource import LEASES, NODES
from kube.workqueue import WorkQueue, work

_SOON = 0.5
"""Seconds until a look at what has just been changed by somebody else."""


class Losses:
    """Nodes that are to be lost, or back."""

    def __init__(self, client: Client, pods: Informer[Pod]) -> None:
        """To be made before `pods` runs."""
        self._client, self._pods = client, pods
        self._nodes = Informer(client, NODES, typed(Node))
        self._nodes.add_handler(self._see)
        self._queue: WorkQueue[str] = WorkQueue()
        pods.add_handler(self._see_pod)

    async def run(self) -> None:
        """Plays until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            group.create_task(work(self._queue, self._write, 1))

    def _see(self, kind: str, old: Node | None, node: Node) -> None:
        if kind != "DELETED" and (node.lost or node.ready == "Unknown" or (old is not None and old.lost)):
            self._queue.add(node.metadata.name)

    def _see_pod(self, kind: str, old: Pod | None, pod: Pod) -> None:
        if pod.ready and kind != "DELETED":
            node = self._nodes.get("", pod.spec.node_name)
            if node is not None and node.lost:
                self._queue.add(pod.spec.node_name)

    async def _write(self, name: str) -> float | None:
        node = self._nodes.get("", name)
        if node is None:
            return None
        found = await self._client.get_or_none(LEASES, LEASES_OF_NODES, name)
        if found is None:
            return _SOON  # KWOK makes it first
        change = loss.lease_patch(node, msgspec.json.decode(found, type=Lease))
        if change is not None:
            try:
                await self._client.patch(LEASES, LEASES_OF_NODES, name, change, content_type=MERGE_PATCH)
            except ApiError as error:
                if not (error.conflict or error.not_found):
                    raise
                return _SOON
        if not node.lost:
            return None
        change = loss.node_patch(node, status.now())
        if change is not None:
            await status.change(self._client, self._nodes, node, change)
        for pod in self._pods:
            if pod.spec.node_name == name and pod.ready:
                await status.change(self._client, self._pods, pod, loss.pod_patch(status.now()))
        return None
