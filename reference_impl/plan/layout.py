"""The layout of a replica of a set: the pods and the replicas of scaling groups of each gang, and the gangs that each
gang waits for (spec GM-30 to GM-43).

A layout is what a PodGangMap stores. All functions return new values; none changes its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from reference_impl.api.coherent import EntryRole
from reference_impl.plan.components import Component, Key, Kind, cliques, groups
from reference_impl.plan.epochs import Epochs, order

Role = EntryRole


@dataclass(frozen=True)
class Entry:
    """Gangs of one epoch, and their members."""

    key: str
    """Its epoch, which no other entry of the replica has or had."""
    generation: str
    """Generation hash of its pods."""
    role: Role = Role.ANCHOR
    cliques: Mapping[str, int] = field(default_factory=dict)
    """Standalone clique by template name → number of its pods; no zeros."""
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Scaling group by config name → replica indices, ascending; no empty tuples."""
    depends_on: tuple[str, ...] = ()
    """The entries whose gangs have to be scheduled before its pods may be."""

    @property
    def anchor(self) -> bool:
        """Whether the entry is one gang, which may hold standalone pods."""
        return self.role is Role.ANCHOR

    @property
    def empty(self) -> bool:
        """Whether no gang of it exists."""
        return not self.cliques and not self.groups

    @property
    def keys(self) -> list[Key]:
        """The components that it holds."""
        return [*(Key(Kind.CLIQUE, name) for name in self.cliques), *(Key(Kind.GROUP, name) for name in self.groups)]

    def count(self, key: Key) -> int:
        """The number of members of a component in it."""
        return self.cliques.get(key.name, 0) if key.kind is Kind.CLIQUE else len(self.groups.get(key.name, ()))

    def with_pods(self, clique: str, count: int) -> Entry:
        """The same entry with this number of pods of the clique."""
        counts = {**self.cliques, clique: count}
        return replace(self, cliques={name: number for name, number in counts.items() if number > 0})

    def with_indices(self, group: str, indices: Iterable[int]) -> Entry:
        """The same entry with these replicas of the scaling group."""
        all_indices = {**self.groups, group: tuple(sorted(set(indices)))}
        return replace(
            self, groups={name: group_indices for name, group_indices in all_indices.items() if group_indices}
        )


Layout = tuple[Entry, ...]
"""Entries in the order of their creation."""


@dataclass(frozen=True)
class EntryGang:
    """One gang of an entry."""

    entry: Entry
    group: str = ""
    """Of an entry that is no anchor: the scaling group of the replica that the gang holds."""
    index: int = -1

    @property
    def cliques(self) -> Mapping[str, int]:
        """Standalone clique → number of its pods."""
        return self.entry.cliques if self.entry.anchor else {}

    @cached_property
    def groups(self) -> Mapping[str, tuple[int, ...]]:
        """Scaling group → replica indices."""
        return self.entry.groups if self.entry.anchor else {self.group: (self.index,)}


def gangs(entry: Entry) -> Iterator[EntryGang]:
    """The gangs of an entry."""
    if entry.empty:
        return
    if entry.anchor:
        yield EntryGang(entry)
        return
    for group, indices in entry.groups.items():
        for index in indices:
            yield EntryGang(entry, group, index)


def first(components: Iterable[Component], generation: str, epochs: Epochs) -> Layout:
    """The layout of a new replica (GM-34): an anchor with all standalone pods and `minAvailable` replicas of each
    scaling group, the further replicas, and a place for those that scaling will add. `components` are all those of the
    replica, in the template's order."""
    every = list(components)
    present = [component for component in every if component.replicas > 0]
    if not present:
        return ()
    anchor, tail, scale_out = epochs(3)
    further = {
        component.key.name: tuple(range(component.minimum, component.replicas))
        for component in groups(present)
        if component.replicas > component.minimum
    }
    entries = [
        Entry(
            anchor,
            generation,
            Role.ANCHOR,
            {component.key.name: component.replicas for component in cliques(present)},
            {component.key.name: tuple(range(component.minimum)) for component in groups(present)},
        )
    ]
    if further:
        entries.append(Entry(tail, generation, Role.TAIL, groups=further, depends_on=(anchor,)))
    if groups(every):
        entries.append(Entry(scale_out, generation, Role.SCALE_OUT, depends_on=(anchor,)))
    return tuple(entries)


def tidy(entries: Iterable[Entry]) -> Layout:
    """The entries in order, without those that hold nothing, and with dependencies on others only that are there.

    The newest entry for replicas that scaling will add stays, although it is empty, as long as there is an anchor
    (GM-42). An entry that depends on nothing any more, and is no anchor, depends on the oldest anchor.
    """
    present = sorted(entries, key=lambda entry: order(entry.key))
    oldest = next((entry.key for entry in present if entry.anchor and not entry.empty), None)
    newest_place = next((entry.key for entry in reversed(present) if entry.role is Role.SCALE_OUT), None)
    remaining = [entry for entry in present if not entry.empty or (oldest is not None and entry.key == newest_place)]
    remaining_keys = {entry.key for entry in remaining}
    return tuple(_depending(entry, remaining_keys, oldest) for entry in remaining)


def _depending(entry: Entry, remaining_keys: set[str], oldest: str | None) -> Entry:
    dependencies = tuple(
        key
        for key in entry.depends_on
        if key in remaining_keys and (order(key) < order(entry.key) or (key == oldest and not entry.anchor))
    )
    if not dependencies and not entry.anchor and oldest is not None:
        dependencies = (oldest,)
    return entry if dependencies == entry.depends_on else replace(entry, depends_on=dependencies)


def anchors(layout: Layout) -> Layout:
    """The anchors."""
    return tuple(entry for entry in layout if entry.anchor)


def pods_of_clique(layout: Layout, clique: str) -> dict[str, int]:
    """Entry → number of pods of a standalone clique."""
    return {entry.key: entry.cliques[clique] for entry in layout if entry.cliques.get(clique)}


def indices_of_group(layout: Layout, group: str) -> dict[str, tuple[int, ...]]:
    """Entry → replica indices of a scaling group."""
    return {entry.key: entry.groups[group] for entry in layout if entry.groups.get(group)}
