"""Starts the containers of pods whose ResourceClaims are allocated and reserved, by the pure rules in `claims`, and
prepared by the drivers that say what they wait for. Events tell what other pods wait for. Part of the process
`startup-order`.

Claims are watched once a pod on a node has some, or a driver needs them. Other pods cost a comparison.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from conformance.cluster.kubelet_sim import claims, status
from conformance.cluster.kubelet_sim.claims import Claim
from conformance.cluster.kubelet_sim.init_wait import SimulatedPod
from conformance.grove.kinds import RESOURCE_CLAIMS
from kube.client import Client
from kube.informer import Informer, typed_decoder
from kube.objects import Key
from kube.resource import Resource
from kube.workqueue import WorkQueue, work

EVENTS = Resource("", "v1", "events", "Event")
_WRITERS = 8
WAITING_PODS_INDEX, _NODE_INDEX = "pod", "node"

Preparation = Callable[[SimulatedPod, Sequence[Claim]], str | None]
"""Returns what keeps a driver from preparing the claims of a pod: an empty string if nothing does, and None if the
driver is busy with it. If the answer changes, the driver calls `PreparedClaims.recheck`."""


class PreparedClaims:
    """The pods on nodes that wait for their claims."""

    def __init__(self, client: Client, pods: Informer[SimulatedPod]) -> None:
        """Must be called before `pods` runs."""
        self._client, self._pods = client, pods
        self.claims = Informer(client, RESOURCE_CLAIMS, typed_decoder(Claim))
        self.claims.add_handler(self._on_claim)
        self.need = asyncio.Event()
        """Set once the claims have to be watched."""
        self._preparations: list[Preparation] = []
        self._queue: WorkQueue[Key] = WorkQueue()
        self._posted_problems: dict[str, str] = {}
        pods.add_handler(self._on_pod)
        pods.add_index(WAITING_PODS_INDEX, self._waiting_for)
        pods.add_index(_NODE_INDEX, lambda pod: [pod.spec.node_name] if pod.waits_for_claims else [])

    async def run(self) -> None:
        """Simulate the preparation of claims until cancelled."""
        await self.need.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.claims.run())
            await self.claims.wait_until_synced()
            group.create_task(work(self._queue, self._prepare, _WRITERS))

    def add_preparation(self, preparation: Preparation) -> None:
        """Add what a driver does with the claims of pods. Call this before `run`."""
        self._preparations.append(preparation)

    def recheck(self, node: str) -> None:
        """Look again at the pods on a node that wait for their claims."""
        for pod in self._pods.indexed(_NODE_INDEX, node):
            self._queue.add(pod.metadata.key)

    def used_by(self, pod: SimulatedPod) -> dict[str, Claim | None]:
        """Map the names of the claims of a pod to the claims that exist."""
        return {name: self.claims.get(pod.metadata.namespace, name) for name in claims.names(pod).values()}

    def _waiting_for(self, pod: SimulatedPod) -> list[str]:
        if not pod.waits_for_claims:
            return []
        return [f"{pod.metadata.namespace}/{name}" for name in claims.names(pod).values() if name]

    def _on_pod(self, event_type: str, old: SimulatedPod | None, pod: SimulatedPod) -> None:
        if event_type != "DELETED" and pod.waits_for_claims:
            self.need.set()
            self._queue.add(pod.metadata.key)
        elif self._posted_problems:
            self._posted_problems.pop(pod.metadata.uid, None)

    def _on_claim(self, event_type: str, old: Claim | None, claim: Claim) -> None:
        for pod in self._pods.indexed(WAITING_PODS_INDEX, f"{claim.metadata.namespace}/{claim.metadata.name}"):
            self._queue.add(pod.metadata.key)

    async def _prepare(self, key: Key) -> float | None:
        pod = self._pods.get(*key)
        if pod is None or not pod.waits_for_claims:
            return None
        used_claims = self.used_by(pod)
        problem = claims.problem(pod, used_claims)
        if not problem:
            existing_claims = [claim for claim in used_claims.values() if claim is not None]
            answers = [preparation(pod, existing_claims) for preparation in self._preparations]
            if None in answers:
                return None
            problem = next(filter(None, answers), "")
        if not problem:
            await status.patch_status(self._client, self._pods, pod, claims.started(status.now()))
        elif self._posted_problems.get(pod.metadata.uid) != problem:
            if pod.metadata.uid not in self._posted_problems and not pod.status.container_statuses:
                await status.patch_status(self._client, self._pods, pod, claims.creating(pod, status.now()))
            self._posted_problems[pod.metadata.uid] = problem
            await self._post_event(pod, problem)
        return None

    async def _post_event(self, pod: SimulatedPod, problem: str) -> None:
        meta, now = pod.metadata, status.now()
        reference = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        await self._client.create(
            EVENTS,
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": f"{meta.name}.", "namespace": meta.namespace},
                "involvedObject": reference,
                "type": "Warning",
                "reason": "FailedPrepareDynamicResources",
                "message": f"Failed to prepare dynamic resources: {problem}",
                "source": {"component": "kubelet", "host": pod.spec.node_name},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            },
        )
