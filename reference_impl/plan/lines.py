"""The two release lines of Grove's contract: how gangs are named and labeled, and whether layouts are stored (spec
GM-01, GM-10 to GM-19).

No other module checks which line the operator implements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from reference_impl.plan import labels, layout, names
from reference_impl.plan.components import Component, Kind
from reference_impl.plan.hashing import fnv
from reference_impl.plan.layout import Entry, EntryGang, Layout


@dataclass(frozen=True)
class Line:
    """A release line of the contract."""

    name: str
    stores_layouts: bool
    """Whether the layout of a replica is stored in a PodGangMap. A layout that is not stored is derived from the
    current `replicas` of cliques and scaling groups."""
    gang_name: Callable[[str, Layout, EntryGang], str]
    """Returns the name of a gang in a replica `<set>-<index>` with this layout."""
    knows_gang: Callable[[str, str], bool]
    """Returns whether a gang of a replica can have this name on this line."""
    gang_labels: Callable[[int, Entry], dict[str, str]]
    """Returns the labels of a gang in addition to those of every gang, from the index of its replica and its entry."""
    clique_labels: Callable[[str, str], dict[str, str | None]]
    """Returns the labels that assign a scaling group's PodClique and its pods to a gang, from the gang and the gang
    that it waits for ("" for none). The value None means that the label must be absent."""
    standalone_labels: Callable[[str], dict[str, str | None]]
    """Returns the labels of a standalone PodClique, from the name of its replica."""


def _name_by_index(replica: str, gangs: Layout, gang: EntryGang) -> str:
    if gang.entry.anchor:
        return replica
    min_available = len(gangs[0].groups.get(gang.group, ()))
    return names.scaled_gang(f"{replica}-{gang.group}", gang.index, min_available)


EPOCH_DIGITS = 19
"""The number of digits of a time in nanoseconds between the years 2001 and 2286."""
LABEL_LIMIT = 63
_EPOCH = re.compile(rf"(.+)-([0-9]{{{EPOCH_DIGITS}}})(?:-.*)?")


def _name_by_epoch(replica: str, gangs: Layout, gang: EntryGang) -> str:
    member = "" if gang.entry.anchor else f"-{gang.group}-{gang.index}"
    name = f"{replica}-{gang.entry.key}{member}"
    if len(name) <= LABEL_LIMIT:
        return name
    # Names of gangs are label values. In a name that is too long, the end is replaced by its hash.
    suffix = f"-{gang.entry.key}-{fnv.encode(fnv.advance(fnv.OFFSET, [replica, member]))[:8]}"
    return replica[: LABEL_LIMIT - len(suffix)] + suffix


def epoch_of(replica: str, gang: str) -> str:
    """Return the epoch in the name of a gang, or an empty string if it is not a name of the line MAPS."""
    match = _EPOCH.fullmatch(gang)
    return match[2] if match is not None and replica.startswith(match[1]) else ""


def _labels_by_epoch(entry: Entry) -> dict[str, str]:
    return {labels.EPOCH: entry.key, labels.GANG_ROLE: entry.role, labels.GENERATION_HASH: entry.generation}


def _standalone_by_epoch(replica: str) -> dict[str, str | None]:
    return {labels.PODGANG: None}  # the pods of a standalone clique may be in several gangs


NAMES = Line(
    "names",
    stores_layouts=False,
    gang_name=lambda replica, gangs, gang: _name_by_index(replica, gangs, gang),
    knows_gang=lambda replica, gang: gang != "" and not epoch_of(replica, gang),
    gang_labels=lambda index, entry: {},
    clique_labels=lambda gang, base: {labels.PODGANG: gang, labels.BASE_PODGANG: base or None},
    standalone_labels=lambda replica: {labels.PODGANG: replica},
)
"""Grove up to v0.1.0-alpha.12-rc1: gangs are identified by the indices of the replicas that they hold."""

MAPS = Line(
    "maps",
    stores_layouts=True,
    gang_name=lambda replica, gangs, gang: _name_by_epoch(replica, gangs, gang),
    knows_gang=lambda replica, gang: epoch_of(replica, gang) != "",
    gang_labels=lambda index, entry: {labels.REPLICA_INDEX: str(index), **_labels_by_epoch(entry)},
    clique_labels=lambda gang, base: {labels.PODGANG: gang, labels.BASE_PODGANG: None},
    standalone_labels=lambda replica: _standalone_by_epoch(replica),
)
"""Grove from v0.1.0-alpha.12: each replica of every set has a PodGangMap."""

LINES = {line.name: line for line in (NAMES, MAPS)}


@lru_cache(maxsize=4096)
def _cached_derived_layout(components: tuple[Component, ...], generation: str) -> Layout:
    # A base gang has all standalone cliques and `minAvailable` replicas of each scaling group, even if they are scaled
    # below the minimum, but not if they are idle (GREP-677).
    scaled_up = [
        c if c.key.kind is Kind.CLIQUE or not c.replicas else replace(c, replicas=max(c.replicas, c.min_available))
        for c in components
    ]
    base, *scaled_entries = layout.first_layout(
        scaled_up, generation, lambda count: [str(number) for number in range(count)]
    ) or (Entry("0", generation),)
    counts = {c.key.name: c.replicas for c in components if c.key.kind is Kind.CLIQUE and c.replicas}
    return replace(base, cliques=counts), *scaled_entries


def derived_layout(components: Iterable[Component], generation: str) -> Layout:
    """Return the layout of a replica whose layout is not stored: the base gang, and a gang for each additional scaling
    group replica."""
    return _cached_derived_layout(tuple(components), generation)


class Placement:
    """The gangs of a replica by name, and the pods and replicas that they hold."""

    def __init__(self, line: Line, replica: str, entries: Layout) -> None:
        """Derive the gangs from the layout `entries`. `replica` is the name of the replica, `<set>-<index>`."""
        self.layout = entries
        self._entries = {entry.key: entry for entry in entries}
        self.gangs = {line.gang_name(replica, entries, gang): gang for entry in entries for gang in layout.gangs(entry)}
        self._gang_by_replica: dict[tuple[str, int], str | None] = {}
        for name, gang in self.gangs.items():
            for group, indices in gang.groups.items():
                for index in indices:  # a replica in two gangs counts as being in no gang until the layout is repaired
                    self._gang_by_replica[group, index] = None if (group, index) in self._gang_by_replica else name
        self._gangs_by_entry: dict[str, list[str]] = {}
        for name, gang in self.gangs.items():
            self._gangs_by_entry.setdefault(gang.entry.key, []).append(name)

    def gang_of(self, group: str, index: int) -> str | None:
        """Return the gang that holds a scaling group replica, or None if no gang holds it (yet)."""
        return self._gang_by_replica.get((group, index))

    def shares(self, clique: str) -> dict[str, int]:
        """Return the number of a standalone clique's pods in each gang, the oldest gang first."""
        return {name: gang.cliques[clique] for name, gang in self.gangs.items() if clique in gang.cliques}

    def awaited_gangs(self, gang: str) -> list[str]:
        """Return the gangs that must be scheduled before the pods of a gang may be scheduled. Gangs of other
        generations are not awaited, since they may belong to a version that never runs. An entry that does not exist is
        awaited until the layout is repaired."""
        gang_entry = self.gangs[gang].entry
        gang_names: list[str] = []
        for key in gang_entry.depends_on:
            entry = self._entries.get(key)
            if entry is None:
                gang_names.append(key)
            elif entry.generation == gang_entry.generation:
                gang_names += self._gangs_by_entry.get(key, ())
        return gang_names

    def dependents(self, gang: str) -> list[str]:
        """Return the gangs that wait for a gang."""
        known_gang = self.gangs.get(gang)
        if known_gang is None:
            return []
        return [
            name
            for entry in self.layout
            if known_gang.entry.key in entry.depends_on
            for name in self._gangs_by_entry.get(entry.key, ())
        ]

    def entry_key(self, gang: str) -> str:
        """Return the entry key of a gang, or the gang's name if it has no entry."""
        known_gang = self.gangs.get(gang)
        return known_gang.entry.key if known_gang is not None else gang
