"""UPD-008: what an update has done is no more than what it has to do."""

from __future__ import annotations

from conformance.grove import updates
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant


class UpdateCounters(Invariant):
    """UPD-008."""

    id = "UPD-008"
    what = "no counter of an update exceeds its total"

    def __init__(self) -> None:
        super().__init__()
        self._judged = 0

    def see(self, record: Record, gangs: Gangs) -> None:
        """Judge the progress of sets and scaling groups."""
        if record.resource not in ("podcliquesets", "podcliquescalinggroups") or record.kind == DELETED:
            return
        if not updates.started(record.object):
            return
        self._judged += 1
        counts = updates.counts(record.object)
        for one, total in updates.COUNTERS:
            if counts[one] > counts[total]:
                what = f"{one} is {counts[one]} and {total} is {counts[total]}"
                self._violate(f"in the progress of {record.resource}/{record.name} {what}", record)

    def _unknown(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no update was reported"
