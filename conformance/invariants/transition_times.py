"""CORE-019: the lastTransitionTime of a condition changes only together with its status (OBJ-702, CHG-GT-09)."""

from __future__ import annotations

from typing import NamedTuple

from conformance.grove.fields import items, text
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.creations import STALE
from conformance.invariants.invariant import Invariant

JUDGED = frozenset({"podcliquesets", "podcliques", "podcliquescalinggroups"})
"""Gangs are left out: their status has two writers."""


class _Condition(NamedTuple):
    """A condition of an object: its status, the time of the first record with that status, and its
    lastTransitionTime."""

    status: str
    begin: float
    moment: str


class TransitionTimes(Invariant):
    """CORE-019. For `STALE` seconds, an operator that does not see its own change of a status yet may repeat the change
    with a later time. Whether the time also changes with the status is not judged, because it has whole seconds
    only."""

    timed = True
    id = "CORE-019"
    statement = f"no lastTransitionTime changes when the status of its condition has been the same for {STALE:g} s"

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[str, tuple[Record, dict[str, _Condition]]] = {}
        self._judged = 0

    def see(self, record: Record, gangs: Gangs) -> None:
        """Compare the conditions of an object with the conditions in its previous record."""
        if record.resource not in JUDGED or record.kind == DELETED:
            return
        before, conditions = self._before.get(record.uid, (record, {}))
        current: dict[str, _Condition] = {}
        for condition in items(record.object, "status", "conditions"):
            condition_type, status, moment = (text(condition, key) for key in ("type", "status", "lastTransitionTime"))
            previous = conditions.get(condition_type)
            status_unchanged = previous is not None and previous.status == status
            current[condition_type] = _Condition(
                status, previous.begin if previous is not None and status_unchanged else record.at, moment
            )
            self._judged += status_unchanged
            if (
                previous is not None
                and status_unchanged
                and moment != previous.moment
                and record.at - previous.begin > STALE
            ):
                subject = f"{condition_type}={status} of {record.resource}/{record.name}"
                self._violate(f"the lastTransitionTime of {subject}: {previous.moment} → {moment}", before, record)
        self._before[record.uid] = (record, current)

    def _unknown(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no object with conditions was written twice"
