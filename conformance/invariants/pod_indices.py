"""INV-025: no two active pods of a clique have the same index (OBJ-260)."""

from __future__ import annotations

from conformance.grove import expected_pods, pods
from conformance.grove.fields import terminating
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant
from conformance.invariants.pod_owners import PodOwners

PodIndex = tuple[str, int]
"""The UID of a clique, and an index in it."""


class OnePodPerIndex(Invariant):
    """INV-025. A pod that is terminating or has ended does not occupy an index, and a recreated clique counts as a
    different clique."""

    id = "INV-025"
    statement = "no two pods of a clique that neither terminate nor have ended have the same index"

    def __init__(self) -> None:
        super().__init__()
        self._owners = PodOwners()
        self._holders: dict[PodIndex, dict[str, Record]] = {}
        """The active pods with this clique and index, by UID."""
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Track the indices of active pods, and judge an index when a pod takes it."""
        self._owners.observe(record)
        index = expected_pods.index(record.object) if record.resource == "pods" else None
        clique = self._owners.current_owner(record) if index is not None else ""
        if index is None or not clique or not pods.is_of_grove(record.object):
            return
        holders = self._holders.setdefault((clique, index), {})
        if record.kind == DELETED or terminating(record.object) or pods.has_ended(record.object):
            holders.pop(record.uid, None)
            return
        if record.uid in holders:
            return
        self._judged += 1
        for other in holders.values():
            self._report_violation(f"pods {other.name} and {record.name} both have the index {index}", other, record)
        holders[record.uid] = record

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod of a clique has an index"
