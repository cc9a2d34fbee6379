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
        self._current_uids: dict[str, str] = {}
        """Name of a PodClique → UID of the object that currently has this name."""
        self._first_owners: dict[str, str] = {}
        """UID of a pod → UID of its PodClique when the pod was first seen."""
        self._owned_pods: set[str] = set()
        """Pods that have had an owner reference."""

    def observe(self, record: Record) -> None:
        """Track PodCliques, and the PodClique of each new pod."""
        if record.resource == "podcliques":
            if record.kind != DELETED:
                self._current_uids[record.name] = record.uid
            elif self._current_uids.get(record.name) == record.uid:
                del self._current_uids[record.name]
        elif record.resource == "pods":
            if pods.owner(record.object):
                self._owned_pods.add(record.uid)
            owner_uid = text(pods.owner(record.object), "uid") or self._current_uids.get(pods.clique(record.object), "")
            if owner_uid:
                self._first_owners.setdefault(record.uid, owner_uid)

    def original_owner(self, record: Record) -> str:
        """Return the UID of the PodClique for which a pod was created; empty if unknown."""
        return self._first_owners.get(record.uid, "")

    def current_owner(self, record: Record) -> str:
        """Return the UID of the PodClique that a pod has in this record; empty for an orphan."""
        owner_uid = text(pods.owner(record.object), "uid")
        return owner_uid if owner_uid or record.uid in self._owned_pods else self.original_owner(record)
