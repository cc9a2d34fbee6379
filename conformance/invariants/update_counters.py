"""UPD-008: the counters of an update never exceed their totals, unless a scale-in has reduced the totals."""

from __future__ import annotations

from conformance.grove import updates
from conformance.grove.fields import count, label
from conformance.grove.labels import PART_OF
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant


class UpdateCounters(Invariant):
    """UPD-008. After a scale-in, PodCliques that are being removed may still count as updated although they no longer
    count in the total. The set and its groups are therefore not judged from then on."""

    id = "UPD-008"
    statement = "no counter of an update exceeds its total"

    def __init__(self) -> None:
        super().__init__()
        self._judged = 0
        self._replicas: dict[str, int] = {}
        self._scaled_in: set[str] = set()
        """Names of sets that have been scaled in."""

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge the progress of sets and scaling groups."""
        if record.resource not in ("podcliquesets", "podcliquescalinggroups") or record.kind == DELETED:
            return
        owner = record.name if record.resource == "podcliquesets" else label(record.object, PART_OF)
        replicas = count(record.object, "spec", "replicas")
        if replicas < self._replicas.get(record.uid, 0):
            self._scaled_in.add(owner)
        self._replicas[record.uid] = replicas
        if owner in self._scaled_in or not updates.start_time(record.object):
            return
        self._judged += 1
        counts = updates.counts(record.object)
        for counter, total in updates.COUNTERS:
            if counts[counter] > counts[total]:
                excess = f"{counter} is {counts[counter]} and {total} is {counts[total]}"
                self._report_violation(f"in the progress of {record.resource}/{record.name} {excess}", record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no update was reported"
