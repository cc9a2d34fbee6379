"""The layout of a replica of a set: which pods and scaling group replicas each gang holds, and which gangs each gang
waits for (spec GM-30 to GM-43).

A PodGangMap stores a layout. All functions return new values and never change their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from reference_impl.api.coherent import EntryRole
from reference_impl.plan.components import Component, Key, Kind, cliques, groups
from reference_impl.plan.epochs import Epochs, sort_key

Role = EntryRole


@dataclass(frozen=True)
class Entry:
    """The gangs of one epoch, and their members."""

    key: str
    """The epoch, which is unique among all present and former entries of the replica."""
    generation: str
    """The generation hash of its pods."""
    role: Role = Role.ANCHOR
    cliques: Mapping[str, int] = field(default_factory=dict)
    """The number of pods of each standalone clique, by template name, without zeros."""
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The replica indices of each scaling group, by config name, in ascending order, without empty tuples."""
    depends_on: tuple[str, ...] = ()
    """The entries whose gangs must be scheduled before the pods of this entry may be scheduled."""

    @property
    def anchor(self) -> bool:
        """Whether the entry is an anchor: a single gang, which may hold standalone pods."""
        return self.role is Role.ANCHOR

    @property
    def is_empty(self) -> bool:
        """Whether the entry has no gangs."""
        return not self.cliques and not self.groups

    @property
    def keys(self) -> list[Key]:
        """The components of which the entry has members."""
        return [*(Key(Kind.CLIQUE, name) for name in self.cliques), *(Key(Kind.GROUP, name) for name in self.groups)]

    def count(self, key: Key) -> int:
        """Return the number of a component's members in this entry."""
        return self.cliques.get(key.name, 0) if key.kind is Kind.CLIQUE else len(self.groups.get(key.name, ()))

    def with_pods(self, clique: str, count: int) -> Entry:
        """Return a copy of the entry with this number of pods of the clique."""
        counts = {**self.cliques, clique: count}
        return replace(self, cliques={name: number for name, number in counts.items() if number > 0})

    def with_indices(self, group: str, indices: Iterable[int]) -> Entry:
        """Return a copy of the entry with these replicas of the scaling group."""
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
    """The scaling group of the replica that the gang holds, if the entry is not an anchor."""
    index: int = -1

    @property
    def cliques(self) -> Mapping[str, int]:
        """The number of pods of each standalone clique."""
        return self.entry.cliques if self.entry.anchor else {}

    @cached_property
    def groups(self) -> Mapping[str, tuple[int, ...]]:
        """The replica indices of each scaling group."""
        return self.entry.groups if self.entry.anchor else {self.group: (self.index,)}


def gangs(entry: Entry) -> Iterator[EntryGang]:
    """Yield the gangs of an entry."""
    if entry.is_empty:
        return
    if entry.anchor:
        yield EntryGang(entry)
        return
    for group, indices in entry.groups.items():
        for index in indices:
            yield EntryGang(entry, group, index)


def first_layout(components: Iterable[Component], generation: str, epochs: Epochs) -> Layout:
    """Return the layout of a new replica (GM-34): an anchor with all standalone pods and `minAvailable` replicas of
    each scaling group, an entry for the remaining replicas, and an entry for replicas that scaling will add.
    `components` holds all components of the replica, in the order of the template."""
    all_components = list(components)
    nonempty = [component for component in all_components if component.replicas > 0]
    if not nonempty:
        return ()
    anchor, tail, scale_out = epochs(3)
    remaining_indices = {
        component.key.name: tuple(range(component.minimum, component.replicas))
        for component in groups(nonempty)
        if component.replicas > component.minimum
    }
    entries = [
        Entry(
            anchor,
            generation,
            Role.ANCHOR,
            {component.key.name: component.replicas for component in cliques(nonempty)},
            {component.key.name: tuple(range(component.minimum)) for component in groups(nonempty)},
        )
    ]
    if remaining_indices:
        entries.append(Entry(tail, generation, Role.TAIL, groups=remaining_indices, depends_on=(anchor,)))
    if groups(all_components):
        entries.append(Entry(scale_out, generation, Role.SCALE_OUT, depends_on=(anchor,)))
    return tuple(entries)


def tidy_layout(entries: Iterable[Entry]) -> Layout:
    """Return the entries in order, without empty entries and without dependencies on entries that do not exist.

    As long as there is an anchor, the newest entry for replicas that scaling will add is kept even if it is empty
    (GM-42). An entry that has no dependencies left and is not an anchor depends on the oldest anchor.
    """
    ordered = sorted(entries, key=lambda entry: sort_key(entry.key))
    oldest = next((entry.key for entry in ordered if entry.anchor and not entry.is_empty), None)
    newest_place = next((entry.key for entry in reversed(ordered) if entry.role is Role.SCALE_OUT), None)
    remaining = [entry for entry in ordered if not entry.is_empty or (oldest is not None and entry.key == newest_place)]
    remaining_keys = {entry.key for entry in remaining}
    return tuple(_with_valid_dependencies(entry, remaining_keys, oldest) for entry in remaining)


def _with_valid_dependencies(entry: Entry, remaining_keys: set[str], oldest: str | None) -> Entry:
    dependencies = tuple(
        key
        for key in entry.depends_on
        if key in remaining_keys and (sort_key(key) < sort_key(entry.key) or (key == oldest and not entry.anchor))
    )
    if not dependencies and not entry.anchor and oldest is not None:
        dependencies = (oldest,)
    return entry if dependencies == entry.depends_on else replace(entry, depends_on=dependencies)


def anchors(layout: Layout) -> Layout:
    """Return the anchors of a layout."""
    return tuple(entry for entry in layout if entry.anchor)


def pods_of_clique(layout: Layout, clique: str) -> dict[str, int]:
    """Return the number of pods of a standalone clique in each entry."""
    return {entry.key: entry.cliques[clique] for entry in layout if entry.cliques.get(clique)}


def indices_of_group(layout: Layout, group: str) -> dict[str, tuple[int, ...]]:
    """Return the replica indices of a scaling group in each entry."""
    return {entry.key: entry.groups[group] for entry in layout if entry.groups.get(group)}
