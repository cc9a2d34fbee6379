"""INV-003: what must be so once things have come to rest (GS-20, GS-23)."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.verdict import Verdict

SETTLED = 10.0
"""Seconds without a binding, deletion or ungating after which a gang counts as settled (scheduling.md A.3)."""


class NothingHeldBelowFloor:
    """INV-003, at the end and at any moment before. A gang that was admitted once may fall below its floor later: that
    is gang termination's business."""

    id = "INV-003"
    what = "a settled gang that was never admitted holds no bound pod"

    def __init__(self) -> None:
        self._admitted: set[str] = set()
        self._bindings: dict[str, Record] = {}
        self._partial: set[str] = set()
        """Gangs that had bound pods and were never admitted when they were seen last."""
        self._touched = ""
        """The gang that the last record touched."""
        self._broken: tuple[str, tuple[Record, ...]] | None = None

    def see(self, record: Record, gangs: Gangs) -> None:
        # A record is seen before it counts: what the one before it touched is now as that one left it.
        name = self._touched
        if name and gangs[name].admitted:
            self._admitted.add(name)
        if name:
            partial = gangs[name].staying and name not in self._admitted
            (self._partial.add if partial else self._partial.discard)(name)
        for each in self._partial:
            if self._broken is None and gangs[each].exists and record.at - gangs[each].stirred >= SETTLED:
                self._broken = self._found(each, gangs)
        self._touched = _gang_of(record)
        if record.resource == "pods" and record.kind != DELETED:
            self._bindings[record.uid] = record

    def verdict(self, gangs: Gangs, now: float) -> Verdict:
        if self._broken is not None:
            return Verdict(self.id, self.what, False, *self._broken)
        waiting = judged = 0
        for name in gangs.names():
            gang = gangs[name]
            if not gang.exists:
                continue
            if name in self._admitted or gang.admitted or not gang.staying:
                judged += 1
            elif now - gang.stirred < SETTLED:
                waiting += 1
            else:
                return Verdict(self.id, self.what, False, *self._found(name, gangs))
        if waiting:
            return Verdict(self.id, self.what, None, f"{waiting} gangs are partly bound and not settled yet")
        if not judged:
            return Verdict(self.id, self.what, None, "there is no gang")
        return Verdict(self.id, self.what, True)

    def _found(self, name: str, gangs: Gangs) -> tuple[str, tuple[Record, ...]]:
        gang = gangs[name]
        records = sorted((self._bindings[uid] for uid in gang.staying), key=lambda record: record.seq)
        reason = f"gang {name} was never admitted ({gang.missing()}) and holds {len(records)} bound pods"
        return reason, tuple(records[:5])


def _gang_of(record: Record) -> str:
    """The gang that a record touches."""
    if record.resource == "podgangs":
        return record.name
    return label(record.object, labels.GANG) if record.resource == "pods" else ""
