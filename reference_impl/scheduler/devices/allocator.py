"""The choice of devices for claims on one node. Either all claims get their devices, or no claim does.

The search is exact. It tries devices in the order in which they are published and alternatives in the order of the
claim, and steps back when a later request cannot be met. Devices that no request, constraint or counter of the search
distinguishes are tried once. A number of steps limits the effort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reference_impl.scheduler.devices.expressions import ExpressionError
from reference_impl.scheduler.devices.inventory import Counter, Inventory, NodeDevices, PublishedDevice
from reference_impl.scheduler.devices.objects import (
    Constraint,
    DeviceId,
    DeviceRequest,
    Request,
    ResourceClaimSpec,
    Result,
)

MAX_STEPS = 20_000
"""Maximum number of devices that one search tries."""
MAX_RESULTS = 32
"""Maximum number of devices of a claim (DRA-03)."""

Results = list[Result]


class UnallocatableError(Exception):
    """The claims cannot be allocated on the node. The message gives the reason."""


@dataclass
class Usage:
    """The allocated devices, and the amounts that they consume of their counters."""

    devices: set[DeviceId] = field(default_factory=set)
    consumed: dict[Counter, int] = field(default_factory=dict)
    """The consumed amounts of counters, in thousandths."""

    def take(self, device_id: DeviceId, inventory: Inventory, count: int = 1) -> None:
        """Mark a device as allocated, or as free if `count` is -1. A device that is not published has no counters."""
        (self.devices.add if count > 0 else self.devices.discard)(device_id)
        published = inventory.devices.get(device_id)
        for counter, amount in published.consumption.items() if published else ():
            self.consumed[counter] = self.consumed.get(counter, 0) + count * amount


def allocate(
    claims: Sequence[ResourceClaimSpec], node: NodeDevices, inventory: Inventory, usage: Usage
) -> list[Results]:
    """Return the allocated devices of each claim. `usage` is unchanged afterwards. Raises UnallocatableError if the
    claims cannot be allocated on the node."""
    return _Search(claims, node, inventory, usage).run()


@dataclass
class _OpenRequest:
    """A request of a claim that must be met, and the constraints of the claim."""

    claim: int
    request: DeviceRequest
    constraints: Sequence[Constraint]


@dataclass(frozen=True)
class _ChosenDevice:
    """A device that the search has chosen."""

    claim: int
    request: str
    alternative: Request
    device: PublishedDevice


class _Search:
    """One search for the devices of claims on one node."""

    def __init__(
        self, claims: Sequence[ResourceClaimSpec], node: NodeDevices, inventory: Inventory, usage: Usage
    ) -> None:
        self._claims, self._node, self._inventory, self._usage = claims, node, inventory, usage
        self._open_requests = [
            _OpenRequest(index, request, claim.devices.constraints)
            for index, claim in enumerate(claims)
            for request in claim.devices.requests
        ]
        self._chosen_devices: list[_ChosenDevice] = []
        self._steps = MAX_STEPS
        self._candidates: dict[int, list[PublishedDevice]] = {}
        self._equivalence_keys: dict[DeviceId, object] = {}

    def run(self) -> list[Results]:
        """Return the devices of each claim. Raises UnallocatableError if the claims cannot be allocated on the node."""
        try:
            for part in self._open_requests:
                for alternative in part.request.alternatives:
                    self._candidates[id(alternative)] = self._selected(alternative)
        except (ExpressionError, LookupError) as error:
            raise UnallocatableError(str(error)) from None
        try:
            if not self._meet(0):
                raise UnallocatableError("cannot allocate all claims")
            results: list[Results] = [[] for _ in self._claims]
            for chosen in self._chosen_devices:
                results[chosen.claim].append(_result(chosen))
            return results
        finally:
            while self._chosen_devices:
                self._give_back()

    def _selected(self, alternative: Request) -> list[PublishedDevice]:
        if alternative.capacity is not None:
            raise LookupError("requests for a share of a device's capacity are not supported")
        if alternative.allocation_mode == "All" and self._node.incomplete_pools:
            raise LookupError(f"all devices are requested, but pool {self._node.incomplete_pools[0]} is incomplete")
        return [device for device in self._node.devices if self._inventory.is_selected(device, alternative)]

    def _meet(self, position: int) -> bool:
        """Meet the requests from `position` on. Return whether that is possible."""
        if position == len(self._open_requests):
            return True
        part = self._open_requests[position]
        for alternative in part.request.alternatives:
            candidates = self._candidates[id(alternative)]
            if alternative.allocation_mode == "All":
                met = bool(candidates) and self._take_all(position, alternative, candidates)
            else:
                met = self._take_some(position, alternative, candidates, alternative.count or 1, 0)
            if met:
                return True
        return False

    def _take_all(self, position: int, alternative: Request, candidates: Sequence[PublishedDevice]) -> bool:
        mark = len(self._chosen_devices)
        if all(self._choose(position, alternative, device) for device in candidates) and self._meet(position + 1):
            return True
        while len(self._chosen_devices) > mark:
            self._give_back()
        return False

    def _take_some(
        self, position: int, alternative: Request, candidates: Sequence[PublishedDevice], count: int, start: int
    ) -> bool:
        """Take `count` of the candidates from index `start` on, and then meet the later requests."""
        if not count:
            return self._meet(position + 1)
        tried: set[object] = set()
        for index in range(start, len(candidates) - count + 1):
            device = candidates[index]
            if self._equivalence_key(device) in tried or not self._choose(position, alternative, device):
                continue
            if self._take_some(position, alternative, candidates, count - 1, index + 1):
                return True
            self._give_back()
            tried.add(self._equivalence_key(device))
        return False

    def _choose(self, position: int, alternative: Request, device: PublishedDevice) -> bool:
        """Choose a device for a request if it is free and meets the constraints."""
        self._steps -= 1
        if self._steps < 0:
            raise UnallocatableError("no allocation was found with reasonable effort")
        part = self._open_requests[position]
        if not self._is_free(device, alternative) or not self._is_permitted(part, alternative, device):
            return False
        chosen_devices = [chosen.device for chosen in self._chosen_devices if chosen.claim == part.claim]
        if device in chosen_devices or len(chosen_devices) == MAX_RESULTS:  # a claim has no device twice
            return False
        self._chosen_devices.append(_ChosenDevice(part.claim, part.request.name, alternative, device))
        if not alternative.admin_access:
            self._usage.take(device.device_id, self._inventory)
        return True

    def _give_back(self) -> None:
        chosen = self._chosen_devices.pop()
        if not chosen.alternative.admin_access:
            self._usage.take(chosen.device.device_id, self._inventory, -1)

    def _is_free(self, device: PublishedDevice, alternative: Request) -> bool:
        tolerations = alternative.tolerations
        if not all(any(toleration.tolerates(taint) for toleration in tolerations) for taint in device.taints):
            return False
        if alternative.admin_access:
            return True
        if device.device_id in self._usage.devices:
            return False
        consumed, totals = self._usage.consumed, self._inventory.counters
        return all(
            consumed.get(counter, 0) + amount <= totals.get(counter, 0)
            for counter, amount in device.consumption.items()
        )

    def _is_permitted(self, part: _OpenRequest, alternative: Request, device: PublishedDevice) -> bool:
        """Return whether the constraints of the claim permit a device."""
        for constraint in part.constraints:
            if not constraint.covers(part.request.name, alternative.name):
                continue
            name = constraint.match_attribute or constraint.distinct_attribute
            value = device.attribute(name)
            if value is None:
                return False
            other_values = (
                chosen.device.attribute(name)
                for chosen in self._chosen_devices
                if chosen.claim == part.claim and constraint.covers(chosen.request, chosen.alternative.name)
            )
            if constraint.match_attribute:
                if any(other != value for other in other_values):
                    return False
            elif value in other_values:
                return False
        return True

    def _equivalence_key(self, device: PublishedDevice) -> object:
        """Return a key that is equal for devices that the search cannot distinguish. Devices that share counters stay
        distinct, because they leave different devices free."""
        key = self._equivalence_keys.get(device.device_id)
        if key is None:
            if device.consumption:
                key = device.device_id
            else:
                names = {
                    c.match_attribute or c.distinct_attribute for part in self._open_requests for c in part.constraints
                }
                candidates = self._candidates.values()
                key = (
                    device.taints,
                    tuple(device.attribute(name) for name in sorted(names)),
                    tuple(device in selected for selected in candidates),
                )
            self._equivalence_keys[device.device_id] = key
        return key


def _result(chosen: _ChosenDevice) -> Result:
    alternative, device = chosen.alternative, chosen.device
    name = f"{chosen.request}/{alternative.name}" if alternative.name else chosen.request
    return Result(
        name,
        device.driver,
        device.pool,
        device.device.name,
        alternative.admin_access or None,
        alternative.tolerations or None,
        device.device.binding_conditions or None,
        device.device.binding_failure_conditions or None,
    )
