"""Watches of devices and claims, and the writes of claims."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any

from kube.client import Client
from kube.errors import REQUEST_FAILED, ApiError
from kube.informer import Informer, typed_decoder
from kube.resource import PODS
from reference_impl.scheduler.devices import extended
from reference_impl.scheduler.devices.decisions import ClaimDecision
from reference_impl.scheduler.devices.inventory import Inventory
from reference_impl.scheduler.devices.ledger import Ledger
from reference_impl.scheduler.devices.objects import (
    CLAIMS,
    CLASSES,
    FINALIZER,
    SLICES,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from reference_impl.scheduler.model import Node, Pod

log = logging.getLogger(__name__)


async def is_served(client: Client) -> bool:
    """Return whether the API server has ResourceClaims. It has none before Kubernetes 1.34, and where they are switched
    off. Raises ApiError."""
    try:
        await client.request("GET", f"/apis/{CLAIMS.group}/{CLAIMS.version}")
    except ApiError as error:
        if not error.not_found:
            raise
        return False
    return True


class ClaimStore:
    """The informer caches of slices, classes and claims. Without `served`, the cluster does not have these resources,
    and no claim exists."""

    def __init__(self, client: Client, changed: Callable[[], None], *, served: bool) -> None:
        self._client = client
        self._inventory: Inventory | None = None
        self._cycle_inventory = Inventory()
        """The devices that the decisions of the last cycle are about; others may be published before the writes."""
        self._extended: dict[str, str] = {}
        """The extended resources that devices serve in this cycle, with their classes."""
        self._slices = Informer(client, SLICES, typed_decoder(ResourceSlice))
        self._classes = Informer(client, CLASSES, typed_decoder(DeviceClass))
        self._claims = Informer(client, CLAIMS, typed_decoder(ResourceClaim))
        self.informers: list[Informer[Any]] = [self._slices, self._classes, self._claims] if served else []

        def on_devices(event_type: str, old: Any, item: Any) -> None:
            self._inventory = None
            changed()

        self._slices.add_handler(on_devices)
        self._classes.add_handler(on_devices)
        self._claims.add_handler(lambda event_type, old, item: changed())

    def ledger(self, nodes: Iterable[Node]) -> Ledger:
        """Return the devices and claims for a scheduling cycle."""
        if self._inventory is None:
            self._inventory = Inventory(self._slices, self._classes)
        self._cycle_inventory = self._inventory
        offered = {resource for node in nodes for resource in node.allocatable}
        ledger = Ledger(self._inventory, self._claims, offered)
        self._extended = ledger.extended
        return ledger

    async def deallocate_unused(self, unbound: Callable[[], Collection[str]]) -> None:
        """Deallocate the claims that are reserved only for pods that are not bound. `unbound` returns these pods, by
        uid.

        A scheduler that ends before it has bound all pods of a gang leaves such claims, and so does a rejected binding.
        """
        reserved = [claim for claim in self._claims if claim.status.allocation and claim.status.reserved_for]
        if reserved:
            pods = set(unbound())
            await asyncio.gather(*(self._deallocate(claim) for claim in reserved if claim.consumers <= pods))

    async def _deallocate(self, claim: ResourceClaim) -> None:
        meta = claim.metadata
        body = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"allocation": None, "reservedFor": None},
        }
        try:
            for consumer in claim.status.reserved_for:  # the caches may not show a binding yet
                pod = await self._client.get_or_none(PODS, meta.namespace, consumer.name)
                if pod is not None and typed_decoder(Pod)(pod).spec.node_name:
                    return
            answer = await self._client.patch(CLAIMS, *meta.key, body, subresource="status")
        except REQUEST_FAILED as error:
            log.info("cannot deallocate claim %s/%s: %s", *meta.key, error or repr(error))
        else:
            self._claims.observe(self._claims.decode(answer))

    async def write(self, decisions: Iterable[ClaimDecision]) -> set[str]:
        """Write the allocations and reservations of claims. Return the pods (by uid) that must not be bound because one
        of their claims could not be written."""
        order = list(decisions)
        outcomes = await asyncio.gather(*(self._write(decision) for decision in order))
        failed = (decision for decision, written in zip(order, outcomes, strict=True) if not written)
        return {pod.metadata.uid for decision in failed for pod in decision.pods}

    async def _write(self, decision: ClaimDecision) -> bool:
        claim, inventory = decision.claim, self._cycle_inventory
        try:
            if not claim.metadata.name:
                body = extended.manifest(decision.pods[0], self._extended)
                claim = self._claims.decode(await self._client.create(CLAIMS, body))
                self._claims.observe(claim)
            elif decision.results is not None and FINALIZER not in (claim.metadata.finalizers or ()):
                finalizers = [*(claim.metadata.finalizers or ()), FINALIZER]
                claim = await self._patch(claim, {"finalizers": finalizers})
            await self._patch(claim, {}, decision.status(inventory))
            if extended.ANNOTATION in (claim.metadata.annotations or {}):
                await self._name_claim(decision.pods[0], claim.metadata.name)
        except REQUEST_FAILED as error:
            if not isinstance(error, ApiError) or not (error.conflict or error.not_found):
                log.warning("cannot allocate claim %s/%s: %s", *claim.metadata.key, error or repr(error))
            return False
        return True

    async def _name_claim(self, pod: Pod, claim_name: str) -> None:
        """Write the name of the claim for extended resources into the status of its pod, where a kubelet looks."""
        status = pod.status.extended_resource_claim_status
        if status is None or status.resource_claim_name != claim_name:
            meta = pod.metadata
            body = {"metadata": {"uid": meta.uid}, "status": extended.pod_status(pod, claim_name, self._extended)}
            await self._client.patch(PODS, meta.namespace, meta.name, body, subresource="status")

    async def _patch(
        self, claim: ResourceClaim, metadata: dict[str, Any], status: dict[str, Any] | None = None
    ) -> ResourceClaim:
        meta = claim.metadata
        body: dict[str, Any] = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, **metadata}}
        if status is None:
            answer = await self._client.patch(CLAIMS, *meta.key, body)
        else:
            answer = await self._client.patch(CLAIMS, *meta.key, {**body, "status": status}, subresource="status")
        written = self._claims.decode(answer)
        self._claims.observe(written)
        return written
