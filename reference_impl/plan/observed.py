"""The observed state of a replica of a set, as far as its layout depends on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from reference_impl.plan.components import Key, Kind
from reference_impl.plan.layout import Entry


@dataclass(frozen=True)
class ObservedPod:
    """A pod of a standalone clique that is neither terminating nor finished."""

    name: str
    entry: str
    """The entry whose gang its label names; if there is none, the name of that gang."""
    ready: bool
    current: bool
    """Whether it has the pod template hash of the set's present template."""
    rank: tuple[float, ...] = ()
    """Its order for deletion, the least first: `plan.pods.worth` (COH-126)."""


@dataclass(frozen=True)
class ObservedReplica:
    """A replica of a scaling group of which at least one PodClique exists that is not terminating."""

    entry: str
    """The entry whose gang its PodCliques name; if there is none, the name of that gang."""
    available: bool
    """Whether every member clique exists and has `minAvailable` Ready pods (COH-I01)."""
    current: bool
    """Whether all its member cliques and all their pods have the template hashes of the set's present template."""


@dataclass(frozen=True)
class Observed:
    """The members of all components, and which gangs have been Ready."""

    pods: Mapping[str, Sequence[ObservedPod]] = field(default_factory=dict)
    """Standalone clique by template name → its pods."""
    replicas: Mapping[str, Mapping[int, ObservedReplica]] = field(default_factory=dict)
    """Scaling group by config name → its replicas by index."""
    been_ready: frozenset[str] = frozenset()
    """Entries all of whose gangs have been Ready at least once: `status.lastReady` is set (COH-150)."""
    same: Mapping[Key, frozenset[str]] = field(default_factory=dict)
    """Component → other generations in which it has the present template (COH-197)."""

    def refills(self, entry: Entry, key: Key, generation: str) -> bool:
        """Whether a missing member is created in its gang: new members always have the present template, and a gang
        never mixes two of them. So a lost member of an old gang is not replaced, but moved first (COH-209, COH-210)."""
        return entry.generation == generation or entry.generation in self.same.get(key, ())

    def outdated(self, entry: Entry, key: Key) -> bool:
        """Whether an entry has members of a component that are not of the present template."""
        if key.kind is Kind.CLIQUE:
            return any(not pod.current for pod in self.pods_in(key.name, entry.key))
        replicas = (self.replica(key, index, entry.key) for index in entry.groups.get(key.name, ()))
        return any(replica is not None and not replica.current for replica in replicas)

    def pods_in(self, clique: str, entry: str) -> list[ObservedPod]:
        """The pods of a clique in an entry, the one to be deleted first in front."""
        return self._by_entry.get((clique, entry), [])

    @cached_property
    def _by_entry(self) -> dict[tuple[str, str], list[ObservedPod]]:
        pods_by_entry: dict[tuple[str, str], list[ObservedPod]] = {}
        for clique, pods in self.pods.items():
            for pod in sorted(pods, key=lambda pod: (pod.rank, pod.ready, pod.name)):
                pods_by_entry.setdefault((clique, pod.entry), []).append(pod)
        return pods_by_entry

    def replica(self, key: Key, index: int, entry: str) -> ObservedReplica | None:
        """A replica of a scaling group, if it is in this entry: one of another entry is about to be deleted."""
        current = self.replicas.get(key.name, {}).get(index)
        return current if current is not None and current.entry == entry else None
