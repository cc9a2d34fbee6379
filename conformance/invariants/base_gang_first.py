"""INV-002: the gates of a scaled gang stay until its base gang is bound."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.history.gangs import Gangs
from conformance.history.record import Record
from conformance.invariants.base_bound_first import Bases
from conformance.invariants.gates import STALE, Gates
from conformance.invariants.invariant import Invariant
from conformance.invariants.strategies import CoherentSets


class BaseGangFirst(Invariant):
    """INV-002. INV-018 judges when Pods of sets with the strategy Coherent may be bound, with a gate or without."""

    timed = True
    id = "INV-002"
    what = (
        "a scaled gang's pod of a set without the strategy Coherent keeps Grove's gate until every PodGroup of its "
        "base gang has minReplicas bound pods"
    )

    def __init__(self) -> None:
        super().__init__()
        self._gates = Gates()
        self._judged = 0
        self._lost: dict[str, float] = {}
        self._bases = Bases()
        self._coherent = CoherentSets()

    def see(self, record: Record, gangs: Gangs) -> None:
        """Judge pods of scaled gangs that lose their gate."""
        self._confirm(record)
        self._coherent.see(record)
        self._note_loss(record, gangs)
        self._bases.see(record)
        gated = self._gates.opened(record)
        base = self._bases.of(record.object) if gated is not None else ""
        if gated is None or not base or self._coherent.include(record.object):
            return
        self._judged += 1
        gang = gangs[base]
        recent = record.at - self._lost.get(base, float("-inf")) <= STALE
        if not gang.admitted and not recent:
            reason = f"scaled pod {record.name} was ungated while in its base gang {base} {gang.missing()}"
            self._suspect(base, reason, *([record] if gated is record else [gated, record]))

    def _unknown(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod of a scaled gang was ungated"

    def _note_loss(self, record: Record, gangs: Gangs) -> None:
        """Note until when each gang was admitted."""
        name = record.name if record.resource == "podgangs" else label(record.object, labels.GANG)
        if record.resource not in ("pods", "podgangs") or not name:
            return
        if gangs[name].admitted:
            # It was admitted until this record. If it still is, the entry does no harm: later records renew it.
            self._lost[name] = record.at
