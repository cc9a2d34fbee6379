"""INV-024: pods of successive PodCliques with the same name are never bound at the same time (COH-127, CHG-RU-23,
CHG-RU-38)."""

from __future__ import annotations

from collections import defaultdict

from conformance.grove import pods
from conformance.grove.fields import terminating
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant
from conformance.invariants.pod_owners import PodOwners


class OneGenerationBound(Invariant):
    """INV-024. Terminating pods do not count, because they have already made way; pods without an owner do not count,
    because they were orphaned on purpose."""

    id = "INV-024"
    statement = "no Pod of a PodClique is bound while Pods of a deleted PodClique of the same name are"

    def __init__(self) -> None:
        super().__init__()
        self._owners = PodOwners()
        self._bound_pods: defaultdict[str, dict[str, tuple[Record, str]]] = defaultdict(dict)
        """Clique → its bound pods by UID, each with the UID of the PodClique that it belongs to."""
        self._clique_by_pod: dict[str, str] = {}
        """UID of a bound pod → its clique."""
        self._first_owner: dict[str, str] = {}
        """Clique → UID of the first PodClique of that name that had a bound pod."""
        self._judged = False

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge a record."""
        self._owners.observe(record)
        if record.resource != "pods":
            return
        clique, owner = pods.clique(record.object), self._owners.current_owner(record)
        self._bound_pods[self._clique_by_pod.pop(record.uid, "")].pop(record.uid, None)
        is_gone = record.kind == DELETED or terminating(record.object) or pods.has_ended(record.object)
        if is_gone or not pods.is_bound(record.object) or not owner:
            return
        self._judged |= self._first_owner.setdefault(clique, owner) != owner
        bound_pods = self._bound_pods[clique]
        other_pod = next((earlier for earlier, owner_uid in bound_pods.values() if owner_uid != owner), None)
        if other_pod is not None:
            self._report_violation(
                f"pod {record.name} is bound, and so is {other_pod.name} of the clique {clique} before",
                other_pod,
                record,
            )
        bound_pods[record.uid], self._clique_by_pod[record.uid] = (record, owner), clique

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no PodClique was recreated"
