"""GANG-005: pods are created with Grove's scheduling gate (OBJ-501), except pods of sets with the strategy Coherent."""

from __future__ import annotations

from conformance.grove import pods
from conformance.history.gangs import Gangs
from conformance.history.record import Record
from conformance.invariants.creations import Creations
from conformance.invariants.invariant import Invariant
from conformance.invariants.strategies import CoherentSets


class GateAtCreation(Invariant):
    """GANG-005."""

    id = "GANG-005"
    statement = "an operator creates every pod of a set without the strategy Coherent with Grove's gate"

    def __init__(self) -> None:
        super().__init__()
        self._creations = Creations()
        self._coherent = CoherentSets()
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Report a violation if a new pod has no gate."""
        self._coherent.observe(record)
        if record.resource != "pods" or not pods.is_of_grove(record.object) or not self._creations.shows(record):
            return
        if self._coherent.include(record.object):
            return
        self._judged += 1
        if not pods.is_gated(record.object):
            self._report_violation(f"pod {record.name} was created without the gate", record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "an operator created no pod of a set without the strategy Coherent"
