"""The layout of a replica of a set: its gangs, and the pods and scaling group replicas that each of them holds (spec
COH-037, COH-055).

A layout is what a PodGangMap stores. All functions return new values; none changes its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reference_impl.api.coherent import MapEntry, PodGangMap
from reference_impl.plan import labels

IS_ANCHOR = {labels.ANCHOR: "true"}


class Kind(StrEnum):
    """The two kinds of components."""

    CLIQUE = "clique"
    """A standalone PodClique; its members are pods."""
    GROUP = "group"
    """A PodCliqueScalingGroup; its members are its replicas, known by index."""


@dataclass(frozen=True, order=True)
class Key:
    """A component of the set. A clique and a scaling group may have the same name (COH-Q32)."""

    kind: Kind
    name: str
    """Name in the set's template, not the full name of an object."""

    def __str__(self) -> str:
        return f"{'PodClique' if self.kind is Kind.CLIQUE else 'PodCliqueScalingGroup'} {self.name}"


@dataclass(frozen=True)
class Entry:
    """A gang and what it holds."""

    name: str
    generation: str
    """Generation hash for which the gang was created (COH-040)."""
    cliques: Mapping[str, int] = field(default_factory=dict)
    """Standalone clique by template name → number of its pods; no zeros."""
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Scaling group by config name → replica indices, ascending; no empty tuples."""
    anchor: bool = False
    """An anchor depends on no other gang; all other gangs depend on the anchors (COH-032, COH-033)."""

    @property
    def empty(self) -> bool:
        """Whether the gang holds nothing."""
        return not self.cliques and not self.groups

    def count(self, key: Key) -> int:
        """How many members of a component the gang holds."""
        return self.cliques.get(key.name, 0) if key.kind is Kind.CLIQUE else len(self.groups.get(key.name, ()))

    def with_pods(self, clique: str, count: int) -> Entry:
        """The same gang with this number of pods of the clique."""
        others = {name: number for name, number in self.cliques.items() if name != clique}
        return replace(self, cliques={**others, clique: count} if count > 0 else others)

    def with_indices(self, group: str, indices: Iterable[int]) -> Entry:
        """The same gang with these replicas of the scaling group."""
        others = {name: held for name, held in self.groups.items() if name != group}
        held = tuple(sorted(set(indices)))
        return replace(self, groups={**others, group: held} if held else others)


Layout = tuple[Entry, ...]
"""Entries in the order in which their gangs were created."""


def tail(name: str, generation: str, group: str, index: int) -> Entry:
    """A gang with one replica of a scaling group, which depends on the anchors (COH-033)."""
    return Entry(name, generation, groups={group: (index,)})


def compact(entries: Iterable[Entry]) -> Layout:
    """The entries that hold anything: a gang without members is deleted (COH-163)."""
    return tuple(entry for entry in entries if not entry.empty)


def pods_of_clique(layout: Layout, clique: str) -> dict[str, int]:
    """Gang → number of pods of a standalone clique: its `podGangMapping` (COH-080)."""
    return {entry.name: entry.cliques[clique] for entry in layout if entry.cliques.get(clique)}


def indices_of_group(layout: Layout, group: str) -> dict[str, tuple[int, ...]]:
    """Gang → replica indices of a scaling group: its `podGangMapping` (COH-080)."""
    return {entry.name: entry.groups[group] for entry in layout if entry.groups.get(group)}


def anchors(layout: Layout) -> Layout:
    """The anchors."""
    return tuple(entry for entry in layout if entry.anchor)


def of_map(podgangmap: PodGangMap) -> Layout:
    """The stored layout. Entries without members, which another writer may have left, are ignored (COH-D01)."""
    return compact(_stored(entry) for entry in podgangmap.spec.entries)


def to_entries(layout: Layout) -> list[MapEntry]:
    """The layout as `spec.entries` of a PodGangMap. Gangs that are no anchors depend on all anchors (COH-055)."""
    return [
        MapEntry(
            name=entry.name,
            pod_clique_set_generation_hash=entry.generation,
            pod_cliques=dict(entry.cliques) or None,
            pcsg_replica_indices={group: list(indices) for group, indices in entry.groups.items()} or None,
            labels=dict(IS_ANCHOR) if entry.anchor else None,
            depends_on=None if entry.anchor else {"matchLabels": dict(IS_ANCHOR)},
        )
        for entry in layout
    ]


def _stored(entry: MapEntry) -> Entry:
    return Entry(
        name=entry.name,
        generation=entry.pod_clique_set_generation_hash,
        cliques={clique: count for clique, count in (entry.pod_cliques or {}).items() if count > 0},
        groups={
            group: tuple(sorted(set(indices)))
            for group, indices in (entry.pcsg_replica_indices or {}).items()
            if indices
        },
        anchor=(entry.labels or {}).get(labels.ANCHOR) == "true",
    )
