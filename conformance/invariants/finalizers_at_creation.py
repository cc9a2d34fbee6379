"""CORE-036: cliques and scaling groups are created with their finalizer (CHG-DEL-01)."""

from __future__ import annotations

from conformance.grove.fields import finalizers, label
from conformance.grove.labels import CLIQUE_FINALIZER, GROUP_FINALIZER, MANAGED_BY, OPERATOR
from conformance.history.gangs import Gangs
from conformance.history.record import Record
from conformance.invariants.creations import Creations
from conformance.invariants.invariant import Invariant

FINALIZERS = {"podcliques": CLIQUE_FINALIZER, "podcliquescalinggroups": GROUP_FINALIZER}


class FinalizersAtCreation(Invariant):
    """CORE-036. Without the finalizer, a deletion removes the object immediately."""

    id = "CORE-036"
    statement = "an operator creates every clique and scaling group with its finalizer"

    def __init__(self) -> None:
        super().__init__()
        self._creations = Creations()
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge the creation of cliques and scaling groups."""
        finalizer = FINALIZERS.get(record.resource)
        if finalizer is None or not self._creations.shows(record) or label(record.object, MANAGED_BY) != OPERATOR:
            return
        self._judged += 1
        if finalizer not in finalizers(record.object):
            self._report_violation(
                f"{record.resource}/{record.name} was created without the finalizer {finalizer}", record
            )

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "an operator created no clique"
