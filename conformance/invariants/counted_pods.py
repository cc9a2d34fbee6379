"""CORE-018: the pod counts in the status of a clique do not exceed its replicas (OBJ-731)."""

from __future__ import annotations

from conformance.grove.fields import at, count
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant


class CountedPods(Invariant):
    """CORE-018."""

    id = "CORE-018"
    statement = "the ready and the schedule-gated pods in the status of a clique are together at most its replicas"

    def __init__(self) -> None:
        super().__init__()
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge the statuses of cliques."""
        status = at(record.object, "status") if record.resource == "podcliques" and record.kind != DELETED else None
        if not isinstance(status, dict) or "replicas" not in status:
            return
        self._judged += 1
        total, ready, gated = (count(status, key) for key in ("replicas", "readyReplicas", "scheduleGatedReplicas"))
        if ready + gated > total:
            self._report_violation(
                f"clique {record.name} reports {ready} ready and {gated} gated of {total} pods", record
            )

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no clique reports its pods"
