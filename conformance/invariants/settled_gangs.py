"""INV-003: a settled gang that was never admitted holds no bound pod (GS-20, GS-23)."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.grove.fields import label
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant, Violation

SETTLED_SECONDS = 10.0
"""Seconds without a binding or deletion of its pods after which a gang counts as settled (scheduling.md A.3)."""


class NoGangHeldBelowMinimum(Invariant):
    """INV-003. Judged throughout the history and at its end. A gang that was admitted once may lose pods later, which
    gang termination handles. A gang that takes over bound pods from an admitted gang counts as admitted, because no
    scheduler has bound these pods for it."""

    timed = True
    id = "INV-003"
    statement = "a settled gang that was never admitted holds no bound pod"
    of_scheduler = True

    def __init__(self, settle: float = 0) -> None:
        """`settle`: the maximum seconds between two steps of the gang scheduler, if that is longer than
        `SETTLED_SECONDS`."""
        super().__init__()
        self._settled_seconds = max(SETTLED_SECONDS, settle)
        self._admitted_gangs: set[str] = set()
        self._last_records: dict[str, Record] = {}
        """The last record of each pod, by UID."""
        self._partial_gangs: set[str] = set()
        """Gangs that had bound pods and had never been admitted, as of their last record."""
        self._last_gang = ""
        """The gang of the last record."""

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge the gang of the previous record."""
        # A record is judged before it is applied, so the gang of the previous record is now in the state after that
        # record.
        name = self._last_gang
        if name and gangs[name].is_admitted:
            self._admitted_gangs.add(name)
        if name:
            is_partial = gangs[name].active_pods and name not in self._admitted_gangs
            (self._partial_gangs.add if is_partial else self._partial_gangs.discard)(name)
        for gang in self._partial_gangs:
            if (
                self._violation is None
                and gangs[gang].exists
                and record.at - gangs[gang].changed_at >= self._settled_seconds
            ):
                self._violation = self._violation_of(gang, gangs)
        self._last_gang = _gang_of(record)
        if record.resource == "pods" and record.kind != DELETED:
            before = self._last_records.get(record.uid)
            if before is not None and self._is_taken_over(before, record):
                self._admitted_gangs.add(self._last_gang)
            self._last_records[record.uid] = record

    def _violation_at_end(self, gangs: Gangs, now: float) -> Violation | None:
        for name in gangs.names():
            if self._is_partly_bound(name, gangs) and now - gangs[name].changed_at >= self._settled_seconds:
                return self._violation_of(name, gangs)
        return None

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        existing = [name for name in gangs.names() if gangs[name].exists]
        if partly_bound_count := sum(self._is_partly_bound(name, gangs) for name in existing):
            return f"{partly_bound_count} gangs are partly bound and not settled yet"
        return "" if existing else "there is no gang"

    def _is_taken_over(self, before: Record, record: Record) -> bool:
        """Return whether a bound pod has moved to another gang, and its previous gang was admitted or did not exist."""
        former_gang = _gang_of(before)
        return (
            pods.is_bound(before.object)
            and former_gang != _gang_of(record)
            and (not former_gang or former_gang in self._admitted_gangs)
        )

    def _is_partly_bound(self, name: str, gangs: Gangs) -> bool:
        """Return whether a gang that was never admitted has bound pods at the end."""
        gang = gangs[name]
        return gang.exists and bool(gang.active_pods) and not (name in self._admitted_gangs or gang.is_admitted)

    def _violation_of(self, name: str, gangs: Gangs) -> Violation:
        gang = gangs[name]
        records = sorted((self._last_records[uid] for uid in gang.active_pods), key=lambda record: record.seq)
        reason = f"gang {name} was never admitted ({gang.shortfall()}) and holds {len(records)} bound pods"
        return reason, tuple(records[:5])


def _gang_of(record: Record) -> str:
    """Return the gang that a record is about; empty if there is none."""
    if record.resource == "podgangs":
        return record.name
    return label(record.object, labels.GANG) if record.resource == "pods" else ""
