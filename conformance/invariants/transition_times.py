"""CORE-019: the transition time of a condition moves only with its status (OBJ-702, CHG-GT-09)."""

from __future__ import annotations

from conformance.grove.fields import items, text
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant

JUDGED = frozenset({"podcliquesets", "podcliques", "podcliquescalinggroups"})
"""Gangs are left out: their status has two writers."""


class TransitionTimes(Invariant):
    """CORE-019. Whether the time moves with the status cannot be told from records: it has whole seconds only."""

    id = "CORE-019"
    what = "no lastTransitionTime changes while the status of its condition stays"

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[str, tuple[Record, dict[str, tuple[str, str]]]] = {}
        self._judged = 0

    def see(self, record: Record, gangs: Gangs) -> None:
        """Compare the conditions of an object with those of its record before."""
        if record.resource not in JUDGED or record.kind == DELETED:
            return
        now = {
            text(each, "type"): (text(each, "status"), text(each, "lastTransitionTime"))
            for each in items(record.object, "status", "conditions")
        }
        before, conditions = self._before.get(record.uid, (record, {}))
        self._before[record.uid] = (record, now)
        for kind, (status, moment) in now.items():
            status_before, moment_before = conditions.get(kind, ("", ""))
            if status != status_before:
                continue
            self._judged += 1
            if moment != moment_before:
                what = f"{kind}={status} of {record.resource}/{record.name}"
                self._violate(f"the lastTransitionTime of {what}: {moment_before} → {moment}", before, record)

    def _unknown(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no object with conditions was written twice"
