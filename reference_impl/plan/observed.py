"""The observed state of a replica of a set: only what its layout depends on."""

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
    """The entry whose gang the pod's label names, or the name of that gang if there is no such entry."""
    ready: bool
    current: bool
    """Whether the pod has the template hash of the set's current template."""
    rank: tuple[float, ...] = ()
    """The sort key for deletion from `plan.pods.worth`; the pod with the lowest key is deleted first (COH-126)."""


@dataclass(frozen=True)
class ObservedReplica:
    """A scaling group replica with at least one PodClique that is not terminating."""

    entry: str
    """The entry whose gang the PodCliques name, or the name of that gang if there is no such entry."""
    available: bool
    """Whether every member clique exists and has `minAvailable` Ready pods (COH-I01)."""
    current: bool
    """Whether all cliques of the replica and all their pods have the template hashes of the set's current template."""


@dataclass(frozen=True)
class Observed:
    """The members of all components, and which entries have been Ready."""

    pods: Mapping[str, Sequence[ObservedPod]] = field(default_factory=dict)
    """The pods of each standalone clique, by template name."""
    replicas: Mapping[str, Mapping[int, ObservedReplica]] = field(default_factory=dict)
    """The replicas of each scaling group, by config name and index."""
    once_ready_entries: frozenset[str] = frozenset()
    """Entries whose gangs have all been Ready at least once, which means that `status.lastReady` is set (COH-150)."""
    current_generations: Mapping[Key, frozenset[str]] = field(default_factory=dict)
    """The other generations in which each component has the current template (COH-197)."""

    def recreates(self, entry: Entry, key: Key, generation: str) -> bool:
        """Return whether a missing member is recreated in its gang. New members always have the current template, and a
        gang never mixes two templates. A lost member of an outdated gang is therefore not replaced there, but is moved
        first (COH-209, COH-210)."""
        return entry.generation == generation or entry.generation in self.current_generations.get(key, ())

    def outdated(self, entry: Entry, key: Key) -> bool:
        """Return whether an entry has members of a component that do not have the current template."""
        if key.kind is Kind.CLIQUE:
            return any(not pod.current for pod in self.pods_in(key.name, entry.key))
        replicas = (self.replica(key, index, entry.key) for index in entry.groups.get(key.name, ()))
        return any(replica is not None and not replica.current for replica in replicas)

    def pods_in(self, clique: str, entry: str) -> list[ObservedPod]:
        """Return the pods of a clique in an entry, in the order of deletion."""
        return self._by_entry.get((clique, entry), [])

    @cached_property
    def _by_entry(self) -> dict[tuple[str, str], list[ObservedPod]]:
        pods_by_entry: dict[tuple[str, str], list[ObservedPod]] = {}
        for clique, pods in self.pods.items():
            for pod in sorted(pods, key=lambda pod: (pod.rank, pod.ready, pod.name)):
                pods_by_entry.setdefault((clique, pod.entry), []).append(pod)
        return pods_by_entry

    def replica(self, key: Key, index: int, entry: str) -> ObservedReplica | None:
        """Return a scaling group replica, or None if it is not in this entry. A replica of another entry is about to be
        deleted."""
        current = self.replicas.get(key.name, {}).get(index)
        return current if current is not None and current.entry == entry else None
