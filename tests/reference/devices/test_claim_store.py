"""Tests of the writes of claims, and of API servers without ResourceClaims."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from kube.client import Client
from kube.errors import ApiError
from kube.objects import ObjectMeta
from reference_impl.scheduler.devices.claim_store import ClaimStore, is_served
from reference_impl.scheduler.devices.decisions import ClaimDecision
from reference_impl.scheduler.devices.objects import FINALIZER, ResourceClaim, ResourceSlice

META = {"name": "gpu", "namespace": "n", "uid": "u", "resourceVersion": "1", "finalizers": [FINALIZER]}


class FakeClient:
    """A client that stores the bodies of patches, and whose discovery has an HTTP status."""

    def __init__(self, status: int = 200) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._status = status

    async def patch(self, resource: Any, namespace: str, name: str, body: dict[str, Any], **_: Any) -> bytes:
        self.bodies.append(body)
        return msgspec.json.encode({"metadata": META})

    async def request(self, method: str, path: str) -> bytes:
        assert (method, path) == ("GET", "/apis/resource.k8s.io/v1")
        if self._status != 200:
            raise ApiError(self._status, "", "", {}, None)
        return b"{}"


def test_claims_are_written_although_other_devices_were_published_meanwhile() -> None:
    client = FakeClient()
    store = ClaimStore(cast(Client, client), lambda: None, served=True)
    store.ledger([])
    for handler in store._slices._handlers:
        handler("ADDED", None, ResourceSlice(msgspec.convert({"name": "s"}, ObjectMeta)))
    claim = msgspec.convert({"metadata": META}, ResourceClaim)
    assert asyncio.run(store.write([ClaimDecision(claim, [], "node")])) == set()
    assert [sorted(body["status"]) for body in client.bodies] == [["allocation", "reservedFor"]]


@pytest.mark.parametrize(("status", "served"), [(200, True), (404, False)])
def test_a_missing_group_is_not_served(status: int, served: bool) -> None:
    assert asyncio.run(is_served(cast(Client, FakeClient(status)))) is served


def test_another_error_is_raised() -> None:
    with pytest.raises(ApiError):
        asyncio.run(is_served(cast(Client, FakeClient(403))))
