"""The state of each gang while a history is replayed: its minimums, its pods, and which pods are bound."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.grove import labels, pods
from conformance.grove.fields import condition_is, count, items, label, terminating, text
from conformance.history.record import DELETED, Record


@dataclass
class ObservedGang:
    """The state of a PodGang, identified by name, at one moment. A gang that does not exist yet, or no longer exists,
    has no minimums."""

    exists: bool = False
    minimums: dict[str, int] = field(default_factory=dict)
    """minReplicas of each PodGroup."""
    references: dict[str, set[str]] = field(default_factory=dict)
    """Names of the pods that each PodGroup references."""
    is_initialized: bool = False
    bound_pods: dict[str, set[str]] = field(default_factory=dict)
    """UIDs of bound pods by clique, including those that are being deleted."""
    active_pods: set[str] = field(default_factory=set)
    """UIDs of bound pods that are not being deleted."""
    changed_at: float = 0.0
    """Time of the last binding or deletion of one of its pods."""

    @property
    def is_admitted(self) -> bool:
        """Return whether every PodGroup has at least minReplicas bound pods (scheduling.md A.3)."""
        return bool(self.minimums) and all(
            len(self.bound_pods.get(group, ())) >= minimum for group, minimum in self.minimums.items()
        )

    def shortfall(self) -> str:
        """Return a description of the PodGroups that are below their minimum."""
        shortfalls = [
            f"{group} has {len(self.bound_pods.get(group, ()))} of {minimum} bound"
            for group, minimum in sorted(self.minimums.items())
            if len(self.bound_pods.get(group, ())) < minimum
        ]
        return ", ".join(shortfalls) or ("the gang has no podgroups" if self.exists else "the gang does not exist")


class Gangs:
    """All gangs of a namespace, by name. Applying a record takes constant time."""

    def __init__(self) -> None:
        self._gangs: dict[str, ObservedGang] = {}
        self._gang_and_clique_by_pod: dict[str, tuple[str, str]] = {}

    def __getitem__(self, name: str) -> ObservedGang:
        return self._gangs.setdefault(name, ObservedGang())

    def names(self) -> list[str]:
        """Return the names of all gangs that have ever existed in the history."""
        return sorted(self._gangs)

    def apply(self, record: Record) -> str:
        """Apply a record of a pod or gang. Return the name of the gang that changed, or an empty string."""
        if record.resource == "podgangs":
            return self._apply_gang(record)
        if record.resource == "pods":
            return self._apply_pod(record)
        return ""

    def _apply_gang(self, record: Record) -> str:
        gang = self[record.name]
        gang.exists = record.kind != DELETED
        groups = items(record.object, "spec", "podgroups") if gang.exists else []
        gang.minimums = {text(group, "name"): count(group, "minReplicas") for group in groups}
        gang.references = {
            text(group, "name"): {
                text(reference, "name")
                for reference in items(group, "podReferences")
                if text(reference, "namespace") == record.namespace
            }
            for group in groups
        }
        gang.is_initialized = gang.exists and condition_is(record.object, "Initialized") == "True"
        return record.name

    def _apply_pod(self, record: Record) -> str:
        previous_gang_and_clique = self._gang_and_clique_by_pod.pop(record.uid, None)
        if previous_gang_and_clique is not None:
            self[previous_gang_and_clique[0]].bound_pods.get(previous_gang_and_clique[1], set()).discard(record.uid)
            self[previous_gang_and_clique[0]].active_pods.discard(record.uid)
        name, clique = label(record.object, labels.GANG), label(record.object, labels.CLIQUE)
        if not name:
            return previous_gang_and_clique[0] if previous_gang_and_clique is not None else ""
        gang = self[name]
        if record.kind != DELETED and pods.is_bound(record.object):
            self._gang_and_clique_by_pod[record.uid] = (name, clique)
            gang.bound_pods.setdefault(clique, set()).add(record.uid)
            if not terminating(record.object):
                gang.active_pods.add(record.uid)
            if previous_gang_and_clique is None:
                gang.changed_at = record.at
        if record.kind == DELETED or terminating(record.object):
            gang.changed_at = record.at
        return name
