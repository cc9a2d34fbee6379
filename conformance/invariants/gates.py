"""INV-001, INV-002, INV-005: when Grove's scheduling gate may go (GS-02, GS-03, OBJ-502 … OBJ-504)."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.grove.fields import label
from conformance.history.gangs import Gang, Gangs
from conformance.history.record import ADDED, DELETED, Record
from conformance.invariants.base_bound_first import Bases
from conformance.invariants.verdict import Verdict

STALE = 5.0
"""Seconds for which an operator may act on what it has seen: a gang that was complete or scheduled so shortly before
the gate went, and has lost a pod since, accuses nobody (GS-06)."""


class _Gates:
    """Finds the moments at which pods lose Grove's gate. A pod made without it loses it when it is made."""

    def __init__(self) -> None:
        self._gated: dict[str, Record] = {}
        self._known: set[str] = set()

    def opened(self, record: Record) -> Record | None:
        """If this record shows that the gate is gone, the last record that showed it (or this one, for a new pod)."""
        if record.resource != "pods" or not label(record.object, labels.GANG):
            return None
        known = record.uid in self._known
        self._known.add(record.uid)
        if record.kind == DELETED:
            self._gated.pop(record.uid, None)
            return None
        if pods.gated(record.object):
            self._gated[record.uid] = record
            return None
        # What a list shows first may have been ungated in any earlier moment: nothing to judge.
        new = not known and record.kind == ADDED and not record.listed
        return self._gated.pop(record.uid, record if new else None)


class _UntilGang:
    """Judges the gang at the moments at which its pods lose their gates."""

    id: str
    what: str

    def __init__(self) -> None:
        self._gates = _Gates()
        self._judged = 0
        self._broken: tuple[str, tuple[Record, ...]] | None = None
        self._gang_records: dict[str, Record] = {}
        self._right_until: dict[tuple[str, str, str], float] = {}

    def lack(self, gang: Gang, clique: str, pod: str) -> str:
        """What the gang lacks for a pod's gate to go, empty when nothing."""
        raise NotImplementedError

    def see(self, record: Record, gangs: Gangs) -> None:
        if record.resource == "podgangs":
            self._note_loss(record, gangs[record.name])
            self._gang_records[record.name] = record
        gated = self._gates.opened(record)
        if gated is None:
            return
        self._judged += 1
        name, clique = label(record.object, labels.GANG), label(record.object, labels.CLIQUE)
        lack = self.lack(gangs[name], clique, record.name)
        recent = record.at - self._right_until.get((name, clique, record.name), float("-inf")) <= STALE
        if lack and not recent and self._broken is None:
            shown = [gated] if gated is not record else []
            if name in self._gang_records:
                shown.append(self._gang_records[name])
            self._broken = (f"pod {record.name} was ungated while its gang {name} {lack}", (*shown, record))

    def verdict(self, gangs: Gangs, now: float) -> Verdict:
        if self._broken is not None:
            return Verdict(self.id, self.what, False, *self._broken)
        if not self._judged:
            return Verdict(self.id, self.what, None, "no pod of a gang was ungated")
        return Verdict(self.id, self.what, True)

    def _note_loss(self, record: Record, before: Gang) -> None:
        """Remembers for which pods a gang that changes now lacked nothing until now."""
        for clique, references in before.references.items():
            for pod in references:
                if not self.lack(before, clique, pod):
                    self._right_until[record.name, clique, pod] = record.at


class GateUntilReferenced(_UntilGang):
    """INV-001."""

    id = "INV-001"
    what = "a pod keeps Grove's gate until its PodGang exists and references it"

    def lack(self, gang: Gang, clique: str, pod: str) -> str:
        if not gang.exists:
            return "did not exist"
        referenced = pod in gang.references.get(clique, ())
        return "" if referenced else f"did not reference it in the PodGroup {clique}"


class GateUntilInitialized(_UntilGang):
    """INV-005. Apart from INV-001, since an operator is known that keeps only that one (OBJ-504)."""

    id = "INV-005"
    what = "a pod keeps Grove's gate until its PodGang is Initialized"

    def lack(self, gang: Gang, clique: str, pod: str) -> str:
        if not gang.exists:
            return "did not exist"
        return "" if gang.initialized else "was not Initialized"


class BaseGangFirst:
    """INV-002."""

    id = "INV-002"
    what = "a scaled gang's pod keeps Grove's gate until every PodGroup of its base gang has minReplicas bound pods"

    def __init__(self) -> None:
        self._gates = _Gates()
        self._judged = 0
        self._broken: tuple[str, tuple[Record, ...]] | None = None
        self._lost: dict[str, float] = {}
        self._bases = Bases()

    def see(self, record: Record, gangs: Gangs) -> None:
        self._note_loss(record, gangs)
        self._bases.see(record)
        gated = self._gates.opened(record)
        base = self._bases.of(record.object) if gated is not None else ""
        if gated is None or not base:
            return
        self._judged += 1
        gang = gangs[base]
        recent = record.at - self._lost.get(base, float("-inf")) <= STALE
        if not gang.admitted and not recent and self._broken is None:
            reason = f"scaled pod {record.name} was ungated while in its base gang {base} {gang.missing()}"
            self._broken = (reason, (record,) if gated is record else (gated, record))

    def verdict(self, gangs: Gangs, now: float) -> Verdict:
        if self._broken is not None:
            return Verdict(self.id, self.what, False, *self._broken)
        if not self._judged:
            return Verdict(self.id, self.what, None, "no pod of a scaled gang was ungated")
        return Verdict(self.id, self.what, True)

    def _note_loss(self, record: Record, gangs: Gangs) -> None:
        """Remembers until when each gang was admitted."""
        name = record.name if record.resource == "podgangs" else label(record.object, labels.GANG)
        if record.resource not in ("pods", "podgangs") or not name:
            return
        if gangs[name].admitted:
            # It was until this record; if it still is, the entry does no harm: later records renew it.
            self._lost[name] = record.at
