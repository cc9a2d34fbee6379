"""INV-003: what must be so once things have come to rest (GS-20, GS-23)."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.history.verdict import Verdict

SETTLED = 10.0
"""Seconds without a binding, deletion or ungating after which a gang counts as settled (scheduling.md A.3)."""


class NothingHeldBelowFloor:
    """INV-003. A gang that was admitted once may fall below its floor later: that is gang termination's business."""

    id = "INV-003"
    what = "a settled gang that was never admitted holds no bound pod"

    def __init__(self) -> None:
        self._admitted: set[str] = set()
        self._bindings: dict[str, Record] = {}

    def see(self, record: Record, gangs: Gangs) -> None:
        # The state before each record was the state after the one before it: every moment but the last is seen here.
        for name in self._touched(record):
            if gangs[name].admitted:
                self._admitted.add(name)
        if record.resource == "pods" and record.kind != DELETED:
            self._bindings[record.uid] = record

    def verdict(self, gangs: Gangs, now: float) -> Verdict:
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
                records = sorted((self._bindings[uid] for uid in gang.staying), key=lambda record: record.seq)
                reason = f"gang {name} was never admitted ({gang.missing()}) and holds {len(records)} bound pods"
                return Verdict(self.id, self.what, False, reason, tuple(records[:5]))
        if waiting:
            return Verdict(self.id, self.what, None, f"{waiting} gangs are partly bound and not settled yet")
        if not judged:
            return Verdict(self.id, self.what, None, "there is no gang")
        return Verdict(self.id, self.what, True)

    def _touched(self, record: Record) -> tuple[str, ...]:
        if record.resource == "podgangs":
            return (record.name,)
        if record.resource == "pods" and label(record.object, labels.GANG):
            return (label(record.object, labels.GANG),)
        return ()
