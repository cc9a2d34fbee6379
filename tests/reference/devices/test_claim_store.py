"""Tests of the writes of claims without a cluster."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from kube.client import Client
from kube.objects import ObjectMeta
from reference_impl.scheduler.devices.claim_store import ClaimStore
from reference_impl.scheduler.devices.decisions import ClaimDecision
from reference_impl.scheduler.devices.objects import FINALIZER, ResourceClaim, ResourceSlice

META = {"name": "gpu", "namespace": "n", "uid": "u", "resourceVersion": "1", "finalizers": [FINALIZER]}


class StoringClient:
    """A client that stores the bodies of patches."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    async def patch(self, resource: Any, namespace: str, name: str, body: dict[str, Any], **_: Any) -> bytes:
        self.bodies.append(body)
        return msgspec.json.encode({"metadata": META})


def test_claims_are_written_although_other_devices_were_published_meanwhile() -> None:
    client = StoringClient()
    store = ClaimStore(cast(Client, client), lambda: None, served=True)
    store.ledger([])
    for handler in store._slices._handlers:
        handler("ADDED", None, ResourceSlice(msgspec.convert({"name": "s"}, ObjectMeta)))
    claim = msgspec.convert({"metadata": META}, ResourceClaim)
    assert asyncio.run(store.write([ClaimDecision(claim, [], "node")])) == set()
    assert [sorted(body["status"]) for body in client.bodies] == [["allocation", "reservedFor"]]
