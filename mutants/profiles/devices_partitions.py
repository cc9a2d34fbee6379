"""Mutants of the scheduler in devices that share counters."""

from __future__ import annotations

from typing import Final

from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.scheduler.devices.allocator import _Search
from reference_impl.scheduler.devices.inventory import PublishedDevice
from reference_impl.scheduler.devices.objects import Request

ROLE: Final = "gang-scheduler"


@mutant("counters-ignored", ROLE, "allocates partitions that overlap", "DEV-020", "DEV-003")
def _counters_ignored() -> None:
    original = _Search._is_free

    def is_free(self: _Search, device: PublishedDevice, alternative: Request) -> bool:
        consumed, self._usage.consumed = self._usage.consumed, {}
        try:
            return original(self, device, alternative)
        finally:
            self._usage.consumed = consumed

    replace(_Search, "_is_free", is_free)


@mutant("one-partition-for-each-card", ROLE, "allocates one partition of each card", "DEV-021")
def _one_partition_for_each_card() -> None:
    original = _Search._is_free

    def is_free(self: _Search, device: PublishedDevice, alternative: Request) -> bool:
        is_touched = any(self._usage.consumed.get(counter) for counter in device.consumption)
        return not is_touched and original(self, device, alternative)

    replace(_Search, "_is_free", is_free)


@mutant("cards-with-partitions-never-whole", ROLE, "allocates no whole card that has partitions", "DEV-021")
def _cards_with_partitions_never_whole() -> None:
    original = _Search._is_free

    def is_free(self: _Search, device: PublishedDevice, alternative: Request) -> bool:
        is_whole = device.consumption and device.attribute("type") == (("string", "gpu"),)
        return not is_whole and original(self, device, alternative)

    replace(_Search, "_is_free", is_free)
