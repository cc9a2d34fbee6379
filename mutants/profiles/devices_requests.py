"""Mutants of the scheduler in the choice of devices for the requests of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.scheduler.devices import allocator
from reference_impl.scheduler.devices.allocator import _Search
from reference_impl.scheduler.devices.inventory import Inventory, PublishedDevice
from reference_impl.scheduler.devices.objects import Constraint, DeviceRequest, Request, Result

ROLE: Final = "gang-scheduler"

Devices = Sequence[PublishedDevice]


def _replace_alternatives(part: slice) -> None:
    def alternatives(self: DeviceRequest) -> list[Request]:
        return [self.exactly] if self.exactly is not None else self.first_available[part]

    replace(DeviceRequest, "alternatives", property(alternatives))


@mutant(ROLE, "ignores the selectors of DeviceClasses", "DEV-007")
@instead_of(Inventory, "is_selected")
def _class_selectors_ignored(self: Inventory, device: PublishedDevice, request: Request) -> bool:
    expressions = [selector.cel.expression for selector in request.selectors if selector.cel is not None]
    return all(self._is_matched(device, expression) for expression in expressions)


@mutant(ROLE, "takes a device if one of the selectors is true", "DEV-007")
@instead_of(Inventory, "is_selected")
def _one_true_selector_suffices(self: Inventory, device: PublishedDevice, request: Request) -> bool:
    selectors = (*self.classes[request.device_class_name].spec.selectors, *request.selectors)
    return any(self._is_matched(device, selector.cel.expression) for selector in selectors if selector.cel)


@mutant(ROLE, "ignores the selectors of all requests after the first", "DEV-007")
@around(_Search, "_selected")
def _later_selectors_ignored(original: Original, self: _Search, alternative: Request) -> list[PublishedDevice]:
    first_requests = {part.claim: part.request for part in reversed(self._open_requests)}
    if any(alternative is entry for request in first_requests.values() for entry in request.alternatives):
        return original(self, alternative)
    return original(self, msgspec.structs.replace(alternative, selectors=[]))


@mutant(ROLE, "tries only the first alternative of a request", "DEV-009")
def _first_alternative_only() -> None:
    _replace_alternatives(slice(1))


@mutant(ROLE, "tries the alternatives of a request from the last to the first", "DEV-009")
def _last_alternative_first() -> None:
    _replace_alternatives(slice(None, None, -1))


@mutant(ROLE, "does not say which alternative of a request it has allocated", "DEV-009")
@around(allocator, "_result")
def _alternatives_unnamed(original: Original, chosen: Any) -> Result:
    return msgspec.structs.replace(original(chosen), request=chosen.request)


@mutant(ROLE, "allocates all free devices if all devices are requested", "DEV-010")
@around(_Search, "_take_all")
def _all_free_devices_suffice(
    original: Original, self: _Search, position: int, alternative: Request, candidates: Devices
) -> bool:
    free_devices = [device for device in candidates if self._is_free(device, alternative)]
    return bool(free_devices) and original(self, position, alternative, free_devices)


@mutant(ROLE, "allocates one device if all devices are requested", "DEV-010")
@instead_of(_Search, "_take_all")
def _one_device_for_all(self: _Search, position: int, alternative: Request, candidates: Devices) -> bool:
    return self._take_some(position, alternative, candidates, 1, 0)


@mutant(ROLE, "allocates one device for each request", "DEV-011")
@around(_Search, "_take_some")
def _count_ignored(
    original: Original, self: _Search, position: int, alternative: Request, candidates: Devices, count: int, start: int
) -> bool:
    return original(self, position, alternative, candidates, min(count, 1), start)


@mutant(ROLE, "ignores the attributes in which devices must differ", "DEV-012")
@around(_Search, "_is_permitted")
def _distinct_attribute_ignored(
    original: Original, self: _Search, part: Any, alternative: Request, device: PublishedDevice
) -> bool:
    if any(constraint.distinct_attribute for constraint in part.constraints):
        return True
    return original(self, part, alternative, device)


@mutant(ROLE, "applies a constraint to all requests of a claim", "DEV-001")
def _constraints_cover_all_requests() -> None:
    replace(Constraint, "covers", lambda self, request, alternative: True)
