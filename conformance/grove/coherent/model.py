"""The common model of PodGangMaps, for all published versions of the proposal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["clique", "group"]


class Key(NamedTuple):
    """A component of a set: a standalone clique or a scaling group, by the name of its template."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Entry:
    """The gang that an entry of a map requests. `key` identifies the gang for its whole lifetime. `dependent`: its pods
    wait for other gangs."""

    key: str
    generation: str
    cliques: Mapping[str, int]
    groups: Mapping[str, tuple[int, ...]]
    anchor: bool
    dependent: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the entry has no members; such an entry requests no gang."""
        return not any(self.cliques.values()) and not any(self.groups.values())

    def size(self, key: Key) -> int:
        """Return how many pods of a clique, or replicas of a scaling group, the gang holds."""
        return self.cliques.get(key.name, 0) if key.kind == "clique" else len(self.groups.get(key.name, ()))

    def components(self) -> set[Key]:
        """Return the components of which the gang holds members."""
        return {Key("clique", name) for name, count in self.cliques.items() if count} | {
            Key("group", name) for name, indices in self.groups.items() if indices
        }

    def content(self) -> str:
        """Return the members of the gang as text, for display and comparison: `{F2, P[0,1]}`."""
        return self._format(lambda replicas: f"[{','.join(map(str, sorted(replicas)))}]")

    def sizes(self) -> str:
        """Return the members of the gang, with the number of each group's replicas instead of their indices:
        `{F2, P×2}`."""
        return self._format(lambda replicas: f"×{len(replicas)}")

    def _format(self, of_group: Callable[[Collection[int]], str]) -> str:
        cliques = [f"{name}{count}" for name, count in sorted(self.cliques.items()) if count]
        groups = [f"{name}{of_group(replicas)}" for name, replicas in sorted(self.groups.items()) if replicas]
        return "{" + ", ".join([*cliques, *groups]) + "}"


Layout = tuple[Entry, ...]
"""The gangs of one replica of a set, without gangs that have no members."""


@dataclass(frozen=True)
class Component:
    """A component, with the values that the plan of an update depends on."""

    key: Key
    replicas: int
    minimum: int
    unavailable: int
    """maxUnavailable."""


def total(layout: Iterable[Entry], key: Key) -> int:
    """Return the total number of pods or replicas of a component in all gangs."""
    return sum(entry.size(key) for entry in layout)


def indices(layout: Iterable[Entry], group: str) -> list[int]:
    """Return the sorted replica indices of a scaling group that gangs hold, including duplicates."""
    return sorted(index for entry in layout for index in entry.groups.get(group, ()))


def broken_partition(layout: Sequence[Entry], sizes: Mapping[Key, int]) -> list[str]:
    """Return an error for each component whose pods or replicas the gangs do not hold exactly once (COH-059)."""
    errors = []
    for key, size in sorted(sizes.items()):
        if key.kind == "clique" and (placed_count := total(layout, key)) != size:
            errors.append(f"entries hold {placed_count} of {size} pods of {key.name}")
        if key.kind == "group" and (replicas := indices(layout, key.name)) != list(range(size)):
            errors.append(f"entries hold replicas {replicas} of {key.name}, which has {size}")
    return errors


def shape(layout: Iterable[Entry]) -> list[str]:
    """Return the sorted contents of all gangs, without their names, for comparison."""
    return sorted(f"{'anchor ' if entry.anchor else ''}{entry.content()}" for entry in layout if not entry.is_empty)
