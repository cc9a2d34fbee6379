"""Pools of devices that a node profile lists one by one, of any driver, as `cluster capture` finds them on a cluster.
Pure functions.

Values that differ between nodes, such as UUIDs, are written as `<id-0>`. Each node has UUIDs of its own in their place;
equal numbers on one node stand for equal UUIDs.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from conformance.cluster.annotations import decoded
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.suggestions import suggestion

POOLS = "conformance.grove.io/device-pools"
"""The annotation of a node with the pools of its profile, as JSON."""
MAX_DEVICES_OF_POOL = 1024
"""Maximum number of devices of a pool, far above that of any machine."""
MAX_BYTES = 240 << 10
"""Maximum size of the annotation. All annotations of an object may have 256 KiB."""
_IDENTIFIER = re.compile(r"<id-([0-9]{1,6})>")

Content = dict[str, Any]


class DevicePool(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True, kw_only=True):
    """A pool of one node. `attributes` and `capacity` are common to all devices; `name` distinguishes several pools of
    a driver."""

    driver: str
    name: str = ""
    attributes: Content = {}
    capacity: Content = {}
    devices: list[Content]
    shared_counters: list[Content] = []

    def pool_name(self, node: str) -> str:
        """Return the name of the pool in ResourceSlices."""
        return f"{node}-{self.name}" if self.name else node

    def complete_devices(self) -> list[Content]:
        """Return the devices with the attributes and capacities that they have in common."""
        return [
            {
                **device,
                **{field: value for field in ("attributes", "capacity") if (value := self._merged(field, device))},
            }
            for device in self.devices
        ]

    def _merged(self, field: str, device: Content) -> Content:
        return {**getattr(self, field), **device.get(field, {})}


def with_common_fields(pool: DevicePool) -> DevicePool:
    """Return the same pool with the attributes and capacities in one place that all devices have in common."""
    common = {
        field: _common([device.get(field, {}) for device in pool.devices]) for field in ("attributes", "capacity")
    }
    devices = []
    for device in pool.devices:
        rest = {
            field: {key: value for key, value in device.get(field, {}).items() if key not in common[field]}
            for field in common
        }
        fields = {key: value for key, value in device.items() if key not in common}
        devices.append(fields | {field: values for field, values in rest.items() if values})
    return msgspec.structs.replace(pool, devices=devices, **common)


def _common(mappings: Sequence[Content]) -> Content:
    first, *rest = mappings
    return {key: value for key, value in first.items() if all(mapping.get(key) == value for mapping in rest)}


def encoded(pools: Sequence[DevicePool]) -> str:
    """Return the annotation of a node."""
    return msgspec.json.encode(pools).decode()


def pools_of(node: str, annotations: Mapping[str, str] | None) -> Sequence[DevicePool]:
    """Return the pools of a node with its own identifiers. Raises ValueError if the annotation is malformed."""
    text = (annotations or {}).get(POOLS, "[]")
    own_text = _IDENTIFIER.sub(lambda match: str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{match[1]}.{node}")), text)
    return decoded({POOLS: own_text}, POOLS, list[DevicePool]) or ()


def load(document: Document) -> Sequence[DevicePool]:
    """Return `pools` of a node profile. Raises UsageError if no driver could publish them (file, line, field)."""
    pools = msgspec.convert(document.value.get("pools", []), list[DevicePool])
    for index, pool in enumerate(pools):
        location = document.location("pools", index)
        if (pool.driver, pool.name) in [(earlier.driver, earlier.name) for earlier in pools[:index]]:
            problem = f"a second pool of {pool.driver} has the same name"
            raise UsageError(problem, where=location, hint="give it another name, or put the devices into one pool")
        if len(pool.devices) > MAX_DEVICES_OF_POOL:
            hint = f"at most {MAX_DEVICES_OF_POOL}"
            raise UsageError(f"has {len(pool.devices)} devices", where=location, hint=hint)
        _require_consistent(pool, document, index)
    if len(encoded(pools)) > MAX_BYTES:
        hint = f"they may take {MAX_BYTES >> 10} KiB as JSON: leave devices or attributes out"
        raise UsageError("are too large for a node", where=document.location("pools"), hint=hint)
    return pools


def _require_consistent(pool: DevicePool, document: Document, index: int) -> None:
    """Raise UsageError if two devices or counter sets have the same name, or if a device consumes other counters than
    those of the pool."""
    for field, entries in (("devices", pool.devices), ("sharedCounters", pool.shared_counters)):
        if name := _duplicate(entry["name"] for entry in entries):
            problem = f"two of them are named {name!r}"
            raise UsageError(problem, where=document.location("pools", index, field), hint="rename one")
    counters_by_set = {entry["name"]: entry["counters"] for entry in pool.shared_counters}
    for position, device in enumerate(pool.devices):
        location = document.location("pools", index, "devices", position)
        for consumption in device.get("consumesCounters", ()):
            name = consumption["counterSet"]
            if name not in counters_by_set:
                hint = suggestion(name, counters_by_set)
                raise UsageError(
                    f"consumes of the counter set {name!r}, which the pool lacks", where=location, hint=hint
                )
            if unknown := sorted(consumption["counters"].keys() - counters_by_set[name].keys()):
                hint = suggestion(unknown[0], counters_by_set[name])
                raise UsageError(f"the counter set {name!r} has no {unknown[0]!r}", where=location, hint=hint)


def _duplicate(names: Iterable[str]) -> str:
    return next((name for name, count in Counter(names).items() if count > 1), "")
