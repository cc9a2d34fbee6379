"""Serves ComputeDomains, as NVIDIA's controller and its plugin on each node do, by the pure rules in `domain_plan`.
Part of the process `startup-order`.

Domains are watched once there is a node with a fabric whose GPUs are devices. Before that, the driver sends no request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from conformance.cluster import compute_domains
from conformance.cluster.compute_domains import DOMAIN, ComputeDomain
from conformance.cluster.kubelet_sim import domain_plan
from conformance.cluster.kubelet_sim.claims import Claim
from conformance.cluster.kubelet_sim.domain_plan import ClaimTemplate, DomainWrite, ServingNode
from conformance.cluster.kubelet_sim.init_wait import SimulatedPod
from conformance.cluster.kubelet_sim.node_failure import SimulatedNode
from conformance.cluster.kubelet_sim.prepared_claims import PreparedClaims
from conformance.cluster.nodes import FABRIC
from conformance.grove.kinds import CLAIM_TEMPLATES, COMPUTE_DOMAINS
from kube.client import Client
from kube.errors import ApiError
from kube.informer import Informer, typed_decoder
from kube.workqueue import WorkQueue, work

_WRITERS = 4
_RETRY_SECONDS = 1.0
"""Seconds until a template is created again whose name another one has."""
_UID, _SERVED, _CHANNEL_NODE, _CLAIMED = "uid", "served domain", "channel node", "claimed domain"

WorkItem = tuple[Literal["node", "domain"], str]
"""A node by name, or a domain by uid."""


class DomainDriver:
    """The ComputeDomains of the cluster."""

    def __init__(
        self,
        client: Client,
        pods: Informer[SimulatedPod],
        nodes: Informer[SimulatedNode],
        prepared_claims: PreparedClaims,
    ) -> None:
        """Must be called before `pods`, `nodes` and `prepared_claims` run."""
        self._client, self._pods, self._nodes, self._prepared_claims = client, pods, nodes, prepared_claims
        self._claims = prepared_claims.claims
        self._domains = Informer(client, COMPUTE_DOMAINS, typed_decoder(ComputeDomain))
        self._templates = Informer(client, CLAIM_TEMPLATES, typed_decoder(ClaimTemplate), label_selector=DOMAIN)
        self._informers: dict[str, Informer[Any]] = {
            str(informer.resource): informer for informer in (self._nodes, self._domains, self._templates)
        }
        self._queue: WorkQueue[WorkItem] = WorkQueue()
        self._fabric_event = asyncio.Event()
        self._is_synced = False
        self._domains.add_index(_UID, lambda domain: [domain.metadata.uid])
        self._domains.add_handler(self._on_domain)
        self._templates.add_index(_UID, lambda template: [template.metadata.label(DOMAIN)])
        self._templates.add_handler(
            lambda event_type, old, item: self._queue.add(("domain", item.metadata.label(DOMAIN)))
        )
        self._claims.add_index(_CHANNEL_NODE, domain_plan.channels)
        self._claims.add_index(_CLAIMED, lambda claim: domain_plan.channels(claim).values())
        self._claims.add_handler(self._on_claim)
        nodes.add_index(_SERVED, lambda node: filter(None, [node.metadata.label(DOMAIN)]))
        nodes.add_handler(self._on_node)
        pods.add_handler(self._on_pod)
        prepared_claims.add_preparation(self._preparation)

    async def run(self) -> None:
        """Serve domains until cancelled."""
        await self._fabric_event.wait()
        self._prepared_claims.need.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._domains.run())
            group.create_task(self._templates.run())
            for informer in (self._domains, self._templates, self._claims):
                await informer.wait_until_synced()
            self._is_synced = True
            for node in self._nodes:
                self._prepared_claims.recheck(node.metadata.name)
            group.create_task(work(self._queue, self._reconcile, _WRITERS))

    def _on_node(self, event_type: str, old: SimulatedNode | None, node: SimulatedNode) -> None:
        labels = {item.metadata.label(DOMAIN) for item in (old, node) if item is not None}
        if compute_domains.has_fabric(node.metadata):
            self._fabric_event.set()
        elif not any(labels):
            return
        if old is None or event_type == "DELETED" or len(labels) > 1 or old.is_lost != node.is_lost:
            self._add("node", node.metadata.name)
            self._add("domain", *labels)
            self._prepared_claims.recheck(node.metadata.name)

    def _on_domain(self, event_type: str, old: ComputeDomain | None, domain: ComputeDomain) -> None:
        uid = domain.metadata.uid
        self._add("domain", uid)
        affected = {node.metadata.name for node in self._nodes.indexed(_SERVED, uid)}
        for claim in self._claims.indexed(_CLAIMED, uid):
            affected.update(domain_plan.channels(claim))
        self._add("node", *affected)
        for node in affected:
            self._prepared_claims.recheck(node)

    def _on_claim(self, event_type: str, old: Claim | None, claim: Claim) -> None:
        for item in (old, claim):
            self._add("node", *(domain_plan.channels(item) if item is not None else ()))

    def _on_pod(self, event_type: str, old: SimulatedPod | None, pod: SimulatedPod) -> None:
        if pod.spec.resource_claims and (old is None or event_type == "DELETED" or old.has_ended != pod.has_ended):
            self._add("node", pod.spec.node_name)
            self._prepared_claims.recheck(pod.spec.node_name)

    def _add(self, kind: Literal["node", "domain"], *names: str) -> None:
        for name in filter(None, names):
            self._queue.add((kind, name))

    def _domain(self, uid: str) -> ComputeDomain | None:
        return next(iter(self._domains.indexed(_UID, uid)), None)

    def _preparation(self, pod: SimulatedPod, claims: Sequence[Claim]) -> str | None:
        """Return what keeps the plugin of the pod's node from preparing the channels of the pod; None while it waits
        for the daemon of a domain."""
        node = self._nodes.get("", pod.spec.node_name)
        for claim in claims:
            uid = domain_plan.channels(claim).get(pod.spec.node_name)
            if node is None or uid is None:
                continue
            if not self._is_synced:
                return None
            domain = self._domain(uid)
            prepared_claims = self._used_claims(node.metadata.name, lambda user: user.has_prepared_claims)
            if problem := domain_plan.problem(claim, node.metadata, domain, prepared_claims):
                return f"ResourceClaim {claim.metadata.name}: {problem}"
            if domain is not None and not domain.is_ready_on(node.metadata.name):
                return None
        return ""

    async def _reconcile(self, item: WorkItem) -> float | None:
        kind, name = item
        for write in list(self._node_writes(name) if kind == "node" else self._domain_writes(name)):
            if not await self._send(write):
                return _RETRY_SECONDS
        return None

    def _node_writes(self, name: str) -> Iterator[DomainWrite]:
        node = self._nodes.get("", name)
        if node is None or node.metadata.deletion_timestamp is not None:
            return
        used_claims = self._used_claims(name, lambda user: not user.has_ended)
        yield from domain_plan.node_writes(node.metadata, used_claims, self._domains, node.is_lost)

    def _used_claims(self, node: str, is_user: Callable[[SimulatedPod], bool]) -> list[Claim]:
        """Return the claims for the channel of a node that are reserved for pods on the node of which `is_user`
        holds."""

        def uses(claim: Claim, consumer: dict[str, Any]) -> bool:
            pod = self._pods.get(claim.metadata.namespace, str(consumer.get("name")))
            is_reserved = pod is not None and pod.metadata.uid == consumer.get("uid")
            return pod is not None and is_reserved and pod.spec.node_name == node and is_user(pod)

        return [
            claim
            for claim in self._claims.indexed(_CHANNEL_NODE, node)
            if any(uses(claim, consumer) for consumer in claim.status.get("reservedFor") or ())
        ]

    def _domain_writes(self, uid: str) -> Iterator[DomainWrite]:
        template = next(iter(self._templates.indexed(_UID, uid)), None)
        nodes = [
            ServingNode(node.metadata.name, node.address, node.metadata.label(FABRIC))
            for node in self._nodes.indexed(_SERVED, uid)
        ]
        yield from domain_plan.domain_writes(self._domain(uid), template, nodes)

    async def _send(self, write: DomainWrite) -> bool:
        """Send a request. Return whether it need not be repeated: after a conflict the change of somebody else arrives
        through the watch."""
        informer = self._informers[str(write.resource)]
        try:
            if write.body is None:
                await self._client.delete(write.resource, write.namespace, write.name)
                return True
            if not write.name:
                answer = await self._client.create(write.resource, write.body)
            else:
                target = (write.resource, write.namespace, write.name)
                answer = await self._client.patch(*target, write.body, subresource=write.subresource)
        except ApiError as error:
            if not (error.conflict or error.not_found or error.already_exists):
                raise
            return not error.already_exists
        informer.observe(informer.decode(answer))
        return True
