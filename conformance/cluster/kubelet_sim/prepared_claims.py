"""Starts the containers of pods whose ResourceClaims are allocated and reserved, by the pure rules in `claims`, and
says in events what other pods wait for. Part of the process `startup-order`.

Claims are watched once a pod on a node has some. Other pods cost a comparison.
"""

from __future__ import annotations

import asyncio

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
WAITING_PODS_INDEX = "pod"


class PreparedClaims:
    """The pods on nodes that wait for their claims."""

    def __init__(self, client: Client, pods: Informer[SimulatedPod]) -> None:
        """Must be called before `pods` runs."""
        self._client, self._pods = client, pods
        self._claims = Informer(client, RESOURCE_CLAIMS, typed_decoder(Claim))
        self._claims.add_handler(self._on_claim)
        self._queue: WorkQueue[Key] = WorkQueue()
        self._waiting_pod_event = asyncio.Event()
        self._posted_problems: dict[str, str] = {}
        pods.add_handler(self._on_pod)
        pods.add_index(WAITING_PODS_INDEX, self._waiting_for)

    async def run(self) -> None:
        """Simulate the preparation of claims until cancelled."""
        await self._waiting_pod_event.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            await self._claims.wait_until_synced()
            group.create_task(work(self._queue, self._prepare, _WRITERS))

    def _waiting_for(self, pod: SimulatedPod) -> list[str]:
        if not pod.waits_for_claims:
            return []
        return [f"{pod.metadata.namespace}/{name}" for name in claims.names(pod).values() if name]

    def _on_pod(self, event_type: str, old: SimulatedPod | None, pod: SimulatedPod) -> None:
        if event_type != "DELETED" and pod.waits_for_claims:
            self._waiting_pod_event.set()
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
        problem = claims.problem(pod, {name: self._claims.get(key[0], name) for name in claims.names(pod).values()})
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
