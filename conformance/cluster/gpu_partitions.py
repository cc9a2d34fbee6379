"""Partitions of GPUs (MIG): which ones a card can have, as a node profile says, and which ones are published (DRA-22).
Pure functions.

A partition takes compute slices and adjacent memory slices of its card. Either each card is split once and for all, or
all possible partitions are offered beside the whole card, and counters keep those apart that would overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from conformance.cluster.annotations import decoded
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format
from conformance.suggestions import suggestion

PARTITIONS = "conformance.grove.io/gpu-partitions"
"""The annotation of a node whose GPUs can be partitioned: `partitions` of its profile, as JSON."""
MAX_PER_CARD = 63
"""Maximum number of possible partitions of a card. A slice has place for them and for the card (DRA-03)."""


Slices = Annotated[int, Meta(ge=1, le=16)]


class PartitionProfile(Format, frozen=True):
    """One size of partitions. `placements` are the memory slices at which such a partition can begin."""

    compute_slices: Slices
    memory_slices: Slices
    placements: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=15)], ...],
        Meta(
            min_length=1,
            description="the memory slices at which such a partition can begin",
            extra_json_schema={"uniqueItems": True},
        ),
    ]


class Partitions(Format, frozen=True, omit_defaults=True):
    """The partitions of each card of a node. `split` names the profiles of the partitions into which each card is
    split; if `dynamic`, all partitions are possible."""

    compute_slices: Annotated[Slices, Meta(description="how many compute slices a card has")]
    memory_slices: Annotated[Slices, Meta(description="how many memory slices a card has")]
    profiles: Annotated[
        dict[Annotated[str, Meta(pattern=r"^[a-z0-9]+(\.[a-z0-9]+)*$", max_length=32)], PartitionProfile],
        Meta(min_length=1, description="the sizes of partitions, by name, as in 1g.10gb"),
    ]
    split: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="the profiles of the partitions into which each card is split"),
    ] = ()
    dynamic: Annotated[
        bool,
        Meta(
            description="offer all partitions beside the whole card, with shared counters",
            extra_json_schema={"const": True},
        ),
    ] = False


@dataclass(frozen=True)
class GpuPartition:
    """A partition of a card."""

    profile: str
    placement: int
    compute_slices: int
    memory_slices: range

    @property
    def suffix(self) -> str:
        """Return the end of the device's name. Names of devices have no dots."""
        return f"mig-{self.profile.replace('.', '')}-{self.placement}"


def partitions_of(annotations: Mapping[str, str] | None) -> Partitions | None:
    """Return the partitions of a node's GPUs; None if there are none. Raises ValueError if the annotation is
    malformed."""
    return decoded(annotations, PARTITIONS, Partitions)


def card_partitions(partitions: Partitions) -> Sequence[GpuPartition]:
    """Return the partitions of a card that are devices."""
    return list(_all_partitions(partitions)) if partitions.dynamic else _arrangement(partitions, partitions.split) or ()


def slice_counters(partitions: Partitions, partition: GpuPartition | None = None) -> dict[str, int]:
    """Return the slices that a partition, or the whole card, takes of a card, by counter."""
    compute, memory = partitions.compute_slices, range(partitions.memory_slices)
    if partition is not None:
        compute, memory = partition.compute_slices, partition.memory_slices
    return {"compute-slices": compute, **{f"memory-slice-{index}": 1 for index in memory}}


def check(partitions: Partitions, document: Document, *field: str) -> None:
    """Raise UsageError if a card cannot have the partitions that a file has in a field (file, line, field)."""
    card = f"a card of {partitions.compute_slices} compute and {partitions.memory_slices} memory slices"
    for name, profile in partitions.profiles.items():
        location = document.location(*field, "profiles", name)
        ends = [placement + profile.memory_slices for placement in profile.placements]
        if profile.compute_slices > partitions.compute_slices or max(ends) > partitions.memory_slices:
            raise UsageError(f"does not fit on {card}", where=location, hint="reduce its slices or its placements")
    if (count := sum(1 for _ in _all_partitions(partitions))) > MAX_PER_CARD:
        hint = f"a card has at most {MAX_PER_CARD}: reduce the profiles or their placements"
        raise UsageError(f"a card has {count} partitions", where=document.location(*field, "profiles"), hint=hint)
    for index, name in enumerate(partitions.split):
        if name not in partitions.profiles:
            location = document.location(*field, "split", index)
            raise UsageError(f"unknown profile {name!r}", where=location, hint=suggestion(name, partitions.profiles))
    if _arrangement(partitions, partitions.split) is None:
        location = document.location(*field, "split")
        raise UsageError(f"these partitions do not fit on {card} together", where=location, hint="remove some")


def _all_partitions(partitions: Partitions) -> Iterator[GpuPartition]:
    for name in partitions.profiles:
        yield from _placements(partitions, name)


def _placements(partitions: Partitions, name: str) -> Iterator[GpuPartition]:
    """Generate the partitions of one profile, by placement."""
    profile = partitions.profiles[name]
    for placement in profile.placements:
        memory = range(placement, placement + profile.memory_slices)
        yield GpuPartition(name, placement, profile.compute_slices, memory)


def _arrangement(
    partitions: Partitions, names: Sequence[str], free: frozenset[int] | None = None
) -> list[GpuPartition] | None:
    """Return a placement of these partitions on one card, where `free` are its free memory slices; None if there is
    none."""
    if sum(partitions.profiles[name].compute_slices for name in names) > partitions.compute_slices:
        return None
    if not names:
        return []
    free = frozenset(range(partitions.memory_slices)) if free is None else free
    for partition in _placements(partitions, names[0]):
        if free.issuperset(partition.memory_slices):
            rest = _arrangement(partitions, names[1:], free.difference(partition.memory_slices))
            if rest is not None:
                return [partition, *rest]
    return None
