"""COHR-018: the statuses of the gangs of a PodGangMap (COH-086, COH-087)."""

from __future__ import annotations

from conformance.grove.coherent import shapes
from conformance.grove.fields import label
from conformance.grove.labels import GENERATION_HASH
from conformance.history.record import DELETED, Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentState


class ScheduledBeforeReady(CoherentRule):
    """COHR-018. Both conditions may be set in the same write."""

    id = "COHR-018"
    statement = "a gang has been reported as scheduled when it is reported as Ready"
    idle_reason = "no gang was reported as Ready"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._scheduled: set[str] = set()

    def judge_state(self, record: Record) -> None:
        """Judge the statuses of gangs."""
        if record.resource != "podgangs" or record.kind == DELETED or not label(record.object, GENERATION_HASH):
            return
        if shapes.gang_was_scheduled(record.object):
            self._scheduled.add(record.uid)
        if shapes.gang_was_ready(record.object):
            self.judged += 1
            if record.uid not in self._scheduled:
                self._report_violation(
                    f"gang {record.name} was reported as Ready and had not been as scheduled", record
                )
