"""Code that is shared by the invariants about Grove's scheduling gate (GS-02, GS-03, OBJ-502 … OBJ-504)."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.grove.fields import label
from conformance.history.gangs import Gangs, ObservedGang
from conformance.history.record import ADDED, DELETED, Record
from conformance.invariants.invariant import Invariant
from conformance.invariants.strategies import CoherentSets

STALE = 5.0
"""Seconds for which an operator may act on an earlier state, because watches deliver changes with a delay: removing a
gate is not a violation if the gang was complete or scheduled this recently and has lost a pod since."""


class Gates:
    """Finds the records in which pods lose Grove's gate. A pod that is created without the gate counts as losing it at
    its creation."""

    def __init__(self) -> None:
        self._last_gated: dict[str, Record] = {}
        self._seen_uids: set[str] = set()

    def last_gated_record(self, record: Record) -> Record | None:
        """If this record shows that the gate was removed, return the last record with the gate (or this record, for a
        new pod); otherwise return None."""
        if record.resource != "pods" or not label(record.object, labels.GANG):
            return None
        was_seen = record.uid in self._seen_uids
        self._seen_uids.add(record.uid)
        if record.kind == DELETED:
            self._last_gated.pop(record.uid, None)
            return None
        if pods.is_gated(record.object):
            self._last_gated[record.uid] = record
            return None
        # A list may show a pod that was ungated at any earlier time, so there is nothing to judge.
        is_new = not was_seen and record.kind == ADDED and not record.listed
        return self._last_gated.pop(record.uid, record if is_new else None)


class GateUntilGang(Invariant):
    """Judges a gang whenever one of its pods loses its gate, unless the set has the strategy Coherent."""

    timed = True

    def __init__(self) -> None:
        super().__init__()
        self._gates = Gates()
        self._coherent = CoherentSets()
        self._judged = 0
        self._gang_records: dict[str, Record] = {}
        self._complete_until: dict[tuple[str, str, str], float] = {}

    def lack(self, gang: ObservedGang, clique: str, pod: str) -> str:
        """Return a message about what the gang lacks before a pod's gate may be removed; empty if it lacks nothing."""
        raise NotImplementedError

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge pods that lose their gate."""
        self._coherent.observe(record)
        if record.resource == "podgangs":
            self._confirm(record)
            self._track_loss(record, gangs[record.name])
            self._gang_records[record.name] = record
        last_gated = self._gates.last_gated_record(record)
        if last_gated is None or self._coherent.include(record.object):
            return
        self._judged += 1
        name, clique = label(record.object, labels.GANG), label(record.object, labels.CLIQUE)
        lack = self.lack(gangs[name], clique, record.name)
        was_complete_recently = (
            record.at - self._complete_until.get((name, clique, record.name), float("-inf")) <= STALE
        )
        if lack and not was_complete_recently:
            records = [last_gated] if last_gated is not record else []
            if name in self._gang_records:
                records.append(self._gang_records[name])
            self._suspect(name, f"pod {record.name} was ungated while its gang {name} {lack}", *records, record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod of a gang was ungated"

    def _track_loss(self, record: Record, before: ObservedGang) -> None:
        """Track the pods for which the gang lacked nothing before this change."""
        for clique, references in before.references.items():
            for pod in references:
                if not self.lack(before, clique, pod):
                    self._complete_until[record.name, clique, pod] = record.at
