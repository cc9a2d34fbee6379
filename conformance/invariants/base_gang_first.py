"""INV-002: the pods of a scaled gang keep their gates until its base gang is bound."""

from __future__ import annotations

import math

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.base_bound_first import BaseGangs
from conformance.invariants.gates import STALE, Gates
from conformance.invariants.invariant import Invariant
from conformance.invariants.strategies import CoherentSets


class BaseGangFirst(Invariant):
    """INV-002. For sets with the strategy Coherent, INV-018 judges when pods may be bound, whether or not they have a
    gate."""

    timed = True
    id = "INV-002"
    statement = (
        "a scaled gang's pod of a set without the strategy Coherent keeps Grove's gate until every PodGroup of its "
        "base gang has had minReplicas bound pods"
    )

    def __init__(self) -> None:
        super().__init__()
        self._gates = Gates()
        self._judged_count = 0
        self._admitted_until: dict[str, float] = {}
        """Gang that was admitted → the time at which it was deleted, which is infinite while the gang exists."""
        self._bases = BaseGangs()
        self._coherent = CoherentSets()

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge pods of scaled gangs that lose their gate."""
        self._confirm(record)
        self._coherent.observe(record)
        self._track_admission(record, gangs)
        self._bases.observe(record)
        last_gated = self._gates.last_gated_record(record)
        base = self._bases.base_gang_of(record.object) if last_gated is not None else ""
        if last_gated is None or not base or self._coherent.include(record.object):
            return
        self._judged_count += 1
        gang = gangs[base]
        if not gang.is_admitted and record.at - self._admitted_until.get(base, -math.inf) > STALE:
            reason = f"scaled pod {record.name} was ungated while in its base gang {base} {gang.shortfall()}"
            self._suspect(base, reason, *([record] if last_gated is record else [last_gated, record]))

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged_count else "no pod of a scaled gang was ungated"

    def _track_admission(self, record: Record, gangs: Gangs) -> None:
        """Track which gangs have ever been admitted. A base gang that later loses pods still counts as scheduled."""
        name = record.name if record.resource == "podgangs" else label(record.object, labels.GANG)
        if record.resource not in ("pods", "podgangs") or not name:
            return
        if gangs[name].is_admitted:
            self._admitted_until[name] = math.inf
        if record.resource == "podgangs" and record.kind == DELETED and name in self._admitted_until:
            self._admitted_until[name] = record.at
