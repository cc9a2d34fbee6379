"""The devices that ResourceSlices publish, by the node on which they can be used (DRA-02).

Only the newest generation of a pool counts. The devices of a pool with missing slices, or with two devices of one name,
are not used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reference_impl.scheduler.devices import expressions
from reference_impl.scheduler.devices.objects import (
    Device,
    DeviceClass,
    DeviceId,
    DeviceTaint,
    Request,
    ResourceSlice,
    SliceSpec,
)
from reference_impl.scheduler.quantity import thousandths
from reference_impl.scheduler.selectors import NodeSelector, selects_node

Counter = tuple[str, str, str, str]
"""Driver, pool, counter set and name of a counter."""


@dataclass(frozen=True, eq=False)
class PublishedDevice:
    """A device, with its pool and the nodes on which it can be used."""

    driver: str
    pool: str
    device: Device
    node_name: str
    node_selector: NodeSelector | None

    @cached_property
    def device_id(self) -> DeviceId:
        """Driver, pool and name."""
        return self.driver, self.pool, self.device.name

    @cached_property
    def attributes(self) -> dict[str, Mapping[str, Any]]:
        """The attributes by qualified name."""
        return {expressions.qualified(name, self.driver): value for name, value in self.device.attributes.items()}

    @cached_property
    def consumption(self) -> dict[Counter, int]:
        """The amount that an allocation takes of each counter, in thousandths."""
        return {
            (self.driver, self.pool, part.counter_set, name): thousandths(amount.value)
            for part in self.device.consumes_counters
            for name, amount in part.counters.items()
        }

    @cached_property
    def taints(self) -> tuple[DeviceTaint, ...]:
        """The taints that keep the device from allocations that do not tolerate them (DRA-08)."""
        return tuple(taint for taint in self.device.taints if taint.effect in ("NoSchedule", "NoExecute"))

    def attribute(self, name: str) -> object:
        """Return a comparable value of an attribute, or None if the device does not have it."""
        value = self.attributes.get(expressions.qualified(name, self.driver))
        return tuple(value.items()) if value else None

    def is_usable_on(self, node: str, labels: Mapping[str, str] | None) -> bool:
        """Return whether the device can be used on a node."""
        if self.node_name:
            return self.node_name == node
        return self.node_selector is None or selects_node(self.node_selector, node, labels)


@dataclass(frozen=True)
class NodeDevices:
    """The devices that a node can use."""

    devices: tuple[PublishedDevice, ...]
    incomplete_pools: tuple[str, ...]
    """Pools with slices for the node that have missing slices or duplicate names."""


class Inventory:
    """All published devices and the device classes."""

    def __init__(self, slices: Iterable[ResourceSlice] = (), classes: Iterable[DeviceClass] = ()) -> None:
        self.classes = {item.metadata.name: item for item in classes}
        self.devices: dict[DeviceId, PublishedDevice] = {}
        self.counters: dict[Counter, int] = {}
        """The total amount of each counter, in thousandths."""
        self._local: dict[str, list[PublishedDevice]] = defaultdict(list)
        self._shared: list[PublishedDevice] = []
        self._incomplete: list[SliceSpec] = []
        self._matches: dict[tuple[str, DeviceId], bool] = {}
        pools: dict[tuple[str, str], list[SliceSpec]] = defaultdict(list)
        for item in sorted(slices, key=lambda item: item.metadata.name):
            pools[item.spec.driver, item.spec.pool.name].append(item.spec)
        for specs in pools.values():
            self._add_pool(specs)

    def _add_pool(self, specs: list[SliceSpec]) -> None:
        newest = max(spec.pool.generation for spec in specs)
        specs = [spec for spec in specs if spec.pool.generation == newest]
        published = [_published(spec, device) for spec in specs for device in spec.devices]
        names = {device.device.name for device in published}
        if len(specs) != specs[0].pool.resource_slice_count or len(names) != len(published):
            self._incomplete += specs
            return
        for spec in specs:
            for group in spec.shared_counters:
                for name, amount in group.counters.items():
                    self.counters[spec.driver, spec.pool.name, group.name, name] = thousandths(amount.value)
        for device in published:
            self.devices[device.device_id] = device
            if device.node_name:
                self._local[device.node_name].append(device)
            else:
                self._shared.append(device)

    def on_node(self, node: str, labels: Mapping[str, str] | None) -> NodeDevices:
        """Return the devices that can be used on a node: first its own devices, and then devices that several nodes can
        use."""
        shared = [device for device in self._shared if device.is_usable_on(node, labels)]
        incomplete = {spec.pool.name for spec in self._incomplete if _concerns(spec, node, labels)}
        return NodeDevices((*self._local.get(node, ()), *shared), tuple(sorted(incomplete)))

    def is_selected(self, device: PublishedDevice, request: Request) -> bool:
        """Return whether a device meets the selectors of a request and of its class. Raises ExpressionError, and
        LookupError if the class does not exist."""
        if (device_class := self.classes.get(request.device_class_name)) is None:
            raise LookupError(f"device class {request.device_class_name} does not exist")
        return all(
            self._is_matched(device, selector.cel.expression)
            for selector in (*device_class.spec.selectors, *request.selectors)
            if selector.cel is not None
        )

    def _is_matched(self, device: PublishedDevice, expression: str) -> bool:
        key = expression, device.device_id
        if (cached := self._matches.get(key)) is None:
            cached = self._matches[key] = expressions.matches(expression, device.driver, device.device)
        return cached


def _concerns(spec: SliceSpec, node: str, labels: Mapping[str, str] | None) -> bool:
    """Return whether a slice may affect which devices a node can use. Counters have no nodes, so a slice with counters
    always may."""
    if spec.shared_counters:
        return True
    if spec.per_device_node_selection:
        return any(_published(spec, device).is_usable_on(node, labels) for device in spec.devices)
    if spec.node_name:
        return spec.node_name == node
    return spec.node_selector is None or selects_node(spec.node_selector, node, labels)


def _published(spec: SliceSpec, device: Device) -> PublishedDevice:
    if spec.per_device_node_selection:
        return PublishedDevice(spec.driver, spec.pool.name, device, device.node_name, device.node_selector)
    return PublishedDevice(spec.driver, spec.pool.name, device, spec.node_name, spec.node_selector)
