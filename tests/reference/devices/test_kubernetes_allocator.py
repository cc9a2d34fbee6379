"""Tests that the reference allocates the same claims as Kubernetes' own allocator, for recorded instances
(fixtures/devices)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from conformance import data
from reference_impl.scheduler.devices import allocator
from reference_impl.scheduler.devices.allocator import UnallocatableError, Usage, allocate
from reference_impl.scheduler.devices.inventory import Inventory
from reference_impl.scheduler.devices.objects import DeviceClass, ResourceClaim, ResourceSlice
from reference_impl.scheduler.selectors import selects_node

RECORDING = data.PROJECT / "fixtures" / "devices" / "kubernetes-1.36.3.jsonl.gz"


def instances() -> Iterator[dict[str, Any]]:
    with gzip.open(RECORDING, "rt") as lines:
        yield from map(json.loads, lines)


def is_allocatable(instance: dict[str, Any]) -> bool:
    slices = msgspec.convert(instance["slices"], list[ResourceSlice])
    inventory = Inventory(slices, msgspec.convert(instance["classes"], list[DeviceClass]))
    claims = {claim.metadata.key: claim for claim in msgspec.convert(instance["claims"], list[ResourceClaim])}
    usage = Usage()
    for claim in claims.values():
        for result in claim.status.allocation.devices.results if claim.status.allocation else ():
            if not result.admin_access:
                usage.take(result.device_id, inventory)
    pod_claims = [claims[tuple(key.split("/"))] for key in instance["podClaims"]]
    name, labels = instance["node"]["metadata"]["name"], instance["node"]["metadata"].get("labels")
    selectors = [claim.status.allocation.node_selector for claim in pod_claims if claim.status.allocation]
    if not all(selector is None or selects_node(selector, name, labels) for selector in selectors):
        return False
    specs = [claim.spec for claim in pod_claims if claim.status.allocation is None]
    try:
        allocate(specs, inventory.on_node(name, labels), inventory, usage)
    except UnallocatableError:
        return False
    return True


def differences() -> list[str]:
    return [instance["id"] for instance in instances() if is_allocatable(instance) is not instance["allocatable"]]


def test_the_same_claims_are_allocated() -> None:
    assert differences() == []


@pytest.mark.parametrize(
    ("owner", "name", "defect"),
    [
        (allocator._Search, "_is_permitted", lambda *_: True),
        (allocator._Search, "_is_free", lambda *_: True),
        (Inventory, "_is_matched", lambda *_: True),
        (allocator, "MAX_STEPS", 5),
    ],
)
def test_the_recording_shows_a_defect(owner: Any, name: str, defect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, defect)
    assert differences()
