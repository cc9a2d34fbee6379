"""Pools of devices that a node profile lists one by one, of any driver, as `cluster capture` finds them on a cluster.
Pure functions.

Values that differ between nodes, such as UUIDs, are written as `<id-0>`. Each node has UUIDs of its own in their place;
equal numbers on one node stand for equal UUIDs.
"""

from __future__ import annotations

import collections
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from conformance.cluster.annotations import decoded
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text
from conformance.suggestions import suggestion

POOLS = "conformance.grove.io/device-pools"
"""The annotation of a node with the pools of its profile, as JSON."""
MAX_DEVICES_OF_POOL = 1024
"""Maximum number of devices of a pool, far above that of any machine."""
MAX_BYTES = 240 << 10
"""Maximum size of the annotation. All annotations of an object may have 256 KiB."""
_IDENTIFIER = re.compile(r"<id-([0-9]{1,6})>")

Content = dict[str, Any]


Label = Annotated[str, Meta(pattern="^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
Values = dict[str, Annotated[Content, Meta(min_length=1)]]


class Counter(Format, frozen=True):
    """An amount of a counter."""

    value: str


Counters = Annotated[dict[str, Counter], Meta(min_length=1)]


class CounterSet(Format, frozen=True):
    """Counters that devices consume."""

    name: Label
    counters: Counters


class Consumption(Format, frozen=True):
    """The part of a counter set that a device consumes."""

    counter_set: Label
    counters: Counters


class DeviceTaint(Format, frozen=True, omit_defaults=True):
    """A taint of a device."""

    key: Text
    effect: Literal["None", "NoSchedule", "NoExecute"]
    value: str | None = None


class Device(Format, frozen=True, omit_defaults=True):
    """A device, with its fields in a ResourceSlice."""

    name: Label
    attributes: Values = field(default_factory=dict)
    capacity: Values = field(default_factory=dict)
    allow_multiple_allocations: bool | None = None
    consumes_counters: list[Consumption] = field(default_factory=list)
    taints: list[DeviceTaint] = field(default_factory=list)


class DevicePool(Format, frozen=True, omit_defaults=True, kw_only=True):
    """A pool of one node. `attributes` and `capacity` are common to all devices; `name` distinguishes several pools of
    a driver."""

    driver: Annotated[str, Meta(pattern="^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$")]
    name: Annotated[
        Label, Meta(description="letters, digits and inner hyphens that distinguish several pools of a driver")
    ] = ""
    attributes: Annotated[Values, Meta(description="attributes of all devices")] = field(default_factory=dict)
    capacity: Annotated[Values, Meta(description="capacities of all devices")] = field(default_factory=dict)
    devices: Annotated[
        list[Device], Meta(min_length=1, description="the devices, with their fields in a ResourceSlice")
    ]
    shared_counters: Annotated[list[CounterSet], Meta(description="the counters that devices consume")] = field(
        default_factory=list
    )

    def pool_name(self, node: str) -> str:
        """Return the name of the pool in ResourceSlices."""
        return f"{node}-{self.name}" if self.name else node

    def complete_devices(self) -> list[Content]:
        """Return the devices, as in a ResourceSlice, with the attributes and capacities that they have in common."""
        return [
            msgspec.to_builtins(
                msgspec.structs.replace(
                    device,
                    attributes={**self.attributes, **device.attributes},
                    capacity={**self.capacity, **device.capacity},
                )
            )
            for device in self.devices
        ]


def with_common_fields(pool: DevicePool) -> DevicePool:
    """Return the same pool with the attributes and capacities in one place that all devices have in common."""
    attributes = _common([device.attributes for device in pool.devices])
    capacity = _common([device.capacity for device in pool.devices])
    devices = [
        msgspec.structs.replace(
            device, attributes=_without(device.attributes, attributes), capacity=_without(device.capacity, capacity)
        )
        for device in pool.devices
    ]
    return msgspec.structs.replace(pool, devices=devices, attributes=attributes, capacity=capacity)


def _common(mappings: Sequence[Content]) -> Content:
    first, *rest = mappings
    return {key: value for key, value in first.items() if all(mapping.get(key) == value for mapping in rest)}


def _without(mapping: Content, common: Content) -> Content:
    return {key: value for key, value in mapping.items() if key not in common}


def encoded(pools: Sequence[DevicePool]) -> str:
    """Return the annotation of a node."""
    return msgspec.json.encode(pools).decode()


def pools_of(node: str, annotations: Mapping[str, str] | None) -> Sequence[DevicePool]:
    """Return the pools of a node with its own identifiers. Raises ValueError if the annotation is malformed."""
    text = (annotations or {}).get(POOLS, "[]")
    own_text = _IDENTIFIER.sub(lambda match: str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{match[1]}.{node}")), text)
    return decoded({POOLS: own_text}, POOLS, list[DevicePool]) or ()


def check(pools: Sequence[DevicePool], document: Document, *field: str) -> None:
    """Raise UsageError if no driver could publish the pools that a file has in a field (file, line, field)."""
    for index, pool in enumerate(pools):
        location = document.location(*field, index)
        if (pool.driver, pool.name) in [(earlier.driver, earlier.name) for earlier in pools[:index]]:
            problem = f"a second pool of {pool.driver} has the same name"
            raise UsageError(problem, where=location, hint="give it another name, or put the devices into one pool")
        if len(pool.devices) > MAX_DEVICES_OF_POOL:
            hint = f"at most {MAX_DEVICES_OF_POOL}"
            raise UsageError(f"has {len(pool.devices)} devices", where=location, hint=hint)
        _require_consistent(pool, document, *field, index)
    if len(encoded(pools)) > MAX_BYTES:
        hint = f"they may take {MAX_BYTES >> 10} KiB as JSON: leave devices or attributes out"
        raise UsageError("are too large for a node", where=document.location(*field), hint=hint)


def _require_consistent(pool: DevicePool, document: Document, *field: str | int) -> None:
    """Raise UsageError if two devices or counter sets have the same name, or if a device consumes other counters than
    those of the pool."""
    names = {
        "devices": [device.name for device in pool.devices],
        "sharedCounters": [counters.name for counters in pool.shared_counters],
    }
    for name_of_list, entries in names.items():
        if name := _duplicate(entries):
            problem = f"two of them are named {name!r}"
            raise UsageError(problem, where=document.location(*field, name_of_list), hint="rename one")
    counters_by_set = {entry.name: entry.counters for entry in pool.shared_counters}
    for position, device in enumerate(pool.devices):
        location = document.location(*field, "devices", position)
        for consumption in device.consumes_counters:
            name = consumption.counter_set
            if name not in counters_by_set:
                hint = suggestion(name, counters_by_set)
                raise UsageError(
                    f"consumes of the counter set {name!r}, which the pool lacks", where=location, hint=hint
                )
            if unknown := sorted(consumption.counters.keys() - counters_by_set[name].keys()):
                hint = suggestion(unknown[0], counters_by_set[name])
                raise UsageError(f"the counter set {name!r} has no {unknown[0]!r}", where=location, hint=hint)


def _duplicate(names: Iterable[str]) -> str:
    return next((name for name, count in collections.Counter(names).items() if count > 1), "")
