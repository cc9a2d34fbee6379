"""CORE-019: the lastTransitionTime of a condition changes only together with its status (OBJ-702, CHG-GT-09)."""

from __future__ import annotations

from typing import NamedTuple

from conformance.grove.fields import items, text
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.creations import STALE
from conformance.invariants.invariant import Invariant

JUDGED_RESOURCES = frozenset({"podcliquesets", "podcliques", "podcliquescalinggroups"})
"""Gangs are left out: their status has two writers."""


class _Condition(NamedTuple):
    """A condition of an object: its status, the time of the first record with that status, and its
    lastTransitionTime."""

    status: str
    first_at: float
    transition_time: str


class TransitionTimes(Invariant):
    """CORE-019. For `STALE` seconds, an operator that does not see its own change of a status yet may repeat the change
    with a later time. Whether the time also changes with the status is not judged, because it has whole seconds
    only."""

    timed = True
    id = "CORE-019"
    statement = f"no lastTransitionTime changes when the status of its condition has been the same for {STALE:g} s"

    def __init__(self) -> None:
        super().__init__()
        self._last_conditions: dict[str, tuple[Record, dict[str, _Condition]]] = {}
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Compare the conditions of an object with the conditions in its previous record."""
        if record.resource not in JUDGED_RESOURCES or record.kind == DELETED:
            return
        before, conditions = self._last_conditions.get(record.uid, (record, {}))
        current: dict[str, _Condition] = {}
        for condition in items(record.object, "status", "conditions"):
            condition_type, status, transition_time = (
                text(condition, key) for key in ("type", "status", "lastTransitionTime")
            )
            previous = conditions.get(condition_type)
            is_status_unchanged = previous is not None and previous.status == status
            current[condition_type] = _Condition(
                status,
                previous.first_at if previous is not None and is_status_unchanged else record.at,
                transition_time,
            )
            self._judged += is_status_unchanged
            if (
                previous is not None
                and is_status_unchanged
                and transition_time != previous.transition_time
                and record.at - previous.first_at > STALE
            ):
                subject = f"{condition_type}={status} of {record.resource}/{record.name}"
                self._report_violation(
                    f"the lastTransitionTime of {subject}: {previous.transition_time} → {transition_time}",
                    before,
                    record,
                )
        self._last_conditions[record.uid] = (record, current)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no object with conditions was written twice"
