"""The components of a replica of a set: standalone cliques and scaling groups (spec COH-030, COH-031)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The two kinds of components."""

    CLIQUE = "clique"
    """A standalone PodClique; its members are pods."""
    GROUP = "group"
    """A PodCliqueScalingGroup; its members are its replicas, identified by index."""


@dataclass(frozen=True, order=True)
class Key:
    """The key of a component of the set. It includes the kind, because a clique and a scaling group may have the same
    name (COH-Q32)."""

    kind: Kind
    name: str
    """The name in the set's template, not the full name of an object."""

    def __str__(self) -> str:
        return f"{'PodClique' if self.kind is Kind.CLIQUE else 'PodCliqueScalingGroup'} {self.name}"


@dataclass(frozen=True)
class Component:
    """A component in one replica of the set. Members are the pods of a clique, or the replicas of a scaling group."""

    key: Key
    replicas: int
    """The desired number of members, which is `spec.replicas` of the live object, or of the template if there is no
    object yet."""
    min_available: int
    max_unavailable: int

    @property
    def minimum(self) -> int:
        """The number of members that are moved together: `minAvailable`, or all members if there are fewer
        (COH-229b)."""
        return max(1, min(self.min_available, self.replicas))

    @property
    def budget(self) -> int:
        """The number of members that may be unavailable at any time (COH-066)."""
        return min(self.max_unavailable, self.replicas)

    @property
    def floor(self) -> int:
        """The number of members that must stay available during an update (COH-152)."""
        return self.replicas - self.budget


def clique(name: str, replicas: int, min_available: int, max_unavailable: int | None = None) -> Component:
    """Return a standalone clique. `max_unavailable` defaults to `min_available` (COH-062)."""
    return _component(Kind.CLIQUE, name, replicas, min_available, max_unavailable)


def group(name: str, replicas: int, min_available: int, max_unavailable: int | None = None) -> Component:
    """Return a scaling group. `max_unavailable` defaults to `min_available` (COH-062)."""
    return _component(Kind.GROUP, name, replicas, min_available, max_unavailable)


def _component(kind: Kind, name: str, replicas: int, min_available: int, max_unavailable: int | None) -> Component:
    return Component(
        Key(kind, name), replicas, min_available, min_available if max_unavailable is None else max_unavailable
    )


def cliques(components: Iterable[Component]) -> list[Component]:
    """Return the standalone cliques."""
    return [component for component in components if component.key.kind is Kind.CLIQUE]


def groups(components: Iterable[Component]) -> list[Component]:
    """Return the scaling groups."""
    return [component for component in components if component.key.kind is Kind.GROUP]
