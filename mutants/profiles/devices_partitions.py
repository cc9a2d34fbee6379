"""Mutants of the scheduler in devices that share counters."""

from __future__ import annotations

from typing import Final

from mutants.registry import mutant
from mutants.replacement import Original, around
from reference_impl.scheduler.devices.allocator import _Search
from reference_impl.scheduler.devices.inventory import PublishedDevice
from reference_impl.scheduler.devices.objects import Request

ROLE: Final = "gang-scheduler"


@mutant(ROLE, "allocates partitions that overlap", "DEV-020", "DEV-003")
@around(_Search, "_is_free")
def _counters_ignored(original: Original, self: _Search, device: PublishedDevice, alternative: Request) -> bool:
    consumed, self._usage.consumed = self._usage.consumed, {}
    try:
        return original(self, device, alternative)
    finally:
        self._usage.consumed = consumed


@mutant(ROLE, "allocates one partition of each card", "DEV-021")
@around(_Search, "_is_free")
def _one_partition_for_each_card(
    original: Original, self: _Search, device: PublishedDevice, alternative: Request
) -> bool:
    is_touched = any(self._usage.consumed.get(counter) for counter in device.consumption)
    return not is_touched and original(self, device, alternative)


@mutant(ROLE, "allocates no whole card that has partitions", "DEV-021")
@around(_Search, "_is_free")
def _cards_with_partitions_never_whole(
    original: Original, self: _Search, device: PublishedDevice, alternative: Request
) -> bool:
    is_whole = device.consumption and device.attribute("type") == (("string", "gpu"),)
    return not is_whole and original(self, device, alternative)
