"""Code that is shared by the invariants that distinguish the pods of a PodClique from the pods of an earlier PodClique
with the same name."""

from __future__ import annotations

from conformance.grove import pods
from conformance.grove.fields import text
from conformance.history.record import DELETED, Record


class PodOwners:
    """The UID of each pod's PodClique: taken from the owner reference, or from the label if the pod never had an owner
    reference (CORE-045)."""

    def __init__(self) -> None:
        self._present: dict[str, str] = {}
        """Name of a PodClique → UID of the object that currently has this name."""
        self._first: dict[str, str] = {}
        """UID of a pod → UID of its PodClique when the pod was first seen."""
        self._owned: set[str] = set()
        """Pods that have had an owner reference."""

    def see(self, record: Record) -> None:
        """Track PodCliques, and the PodClique of each new pod."""
        if record.resource == "podcliques":
            if record.kind != DELETED:
                self._present[record.name] = record.uid
            elif self._present.get(record.name) == record.uid:
                del self._present[record.name]
        elif record.resource == "pods":
            if pods.owner(record.object):
                self._owned.add(record.uid)
            owner_uid = text(pods.owner(record.object), "uid") or self._present.get(pods.clique(record.object), "")
            if owner_uid:
                self._first.setdefault(record.uid, owner_uid)

    def first(self, record: Record) -> str:
        """Return the UID of the PodClique for which a pod was created; empty if unknown."""
        return self._first.get(record.uid, "")

    def now(self, record: Record) -> str:
        """Return the UID of the PodClique that a pod has in this record; empty for an orphan."""
        owner_uid = text(pods.owner(record.object), "uid")
        return owner_uid if owner_uid or record.uid in self._owned else self.first(record)
