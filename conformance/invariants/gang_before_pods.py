"""GANG-024: a PodGang is created before its pods (GREP-375, OBJ-372)."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.creations import STALE, Creations
from conformance.invariants.invariant import Invariant


class GangBeforePods(Invariant):
    """GANG-024. A gang that was deleted in the last `STALE` seconds still counts as existing."""

    timed = True
    id = "GANG-024"
    statement = "a pod is created while its PodGang exists"

    def __init__(self) -> None:
        super().__init__()
        self._creations = Creations()
        self._deleted_at: dict[str, float] = {}
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge the creation of pods."""
        self._confirm(record)
        if record.resource == "podgangs" and record.kind == DELETED:
            self._deleted_at[record.name] = record.at
        name = label(record.object, labels.GANG) if record.resource == "pods" else ""
        if not name or not self._creations.shows(record):
            return
        self._judged += 1
        is_missing = not gangs[name].exists and record.at - self._deleted_at.get(name, float("-inf")) > STALE
        if is_missing:
            self._suspect(name, f"pod {record.name} was created while its gang {name} did not exist", record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod of a gang was created"
