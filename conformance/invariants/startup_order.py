"""INV-006: no pod is Ready before the cliques that it starts after (OBJ-604, OBJ-606, OBJ-643)."""

from __future__ import annotations

from collections import defaultdict

from conformance.grove import pods, startup, template
from conformance.grove.fields import controller, label, labels, text
from conformance.grove.labels import PART_OF
from conformance.grove.template import SetTemplate
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant


class ParentsReadyFirst(Invariant):
    """INV-006. A wait that has ended does not start again: a pod may become Ready although a parent was lost again, if
    at one time since its creation all its parents had their minimums Ready. A pod's clique is its controller."""

    id = "INV-006"
    what = "a pod becomes Ready only after each clique that it starts after had minAvailable pods Ready"

    def __init__(self) -> None:
        super().__init__()
        self._sets: dict[str, SetTemplate] = {}
        self._ready: defaultdict[str, set[str]] = defaultdict(set)
        self._waiting: dict[str, dict[str, int]] = {}
        self._known: set[str] = set()
        self._dependants: defaultdict[str, set[str]] = defaultdict(set)
        self._dependent: set[str] = set()
        self._judged = 0

    def see(self, record: Record, gangs: Gangs) -> None:
        """Judge pods that become Ready; note how many Ready pods each clique has."""
        if record.resource == "podcliquesets" and record.kind != DELETED:
            self._sets[record.name] = template.read(record.object)
        if record.resource == "pods":
            self._see_pod(record)

    def _unknown(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod that starts after others became Ready"

    def _see_pod(self, record: Record) -> None:
        clique = text(controller(record.object), "name")
        if record.kind == DELETED:
            self._ready[clique].discard(record.uid)
            self._done(record.uid)
            return
        ready = pods.ready(record.object)
        if record.uid not in self._known:
            self._known.add(record.uid)
            # A pod that the first list shows as Ready may have been Ready at any earlier time: nothing to judge.
            if not (record.listed and ready):
                self._await(record, clique)
        if ready and record.uid in self._dependent:
            self._dependent.discard(record.uid)
            self._judged += 1
            if record.uid in self._waiting:
                self._judge(record, clique)
        if ready:
            self._ready[clique].add(record.uid)
        else:
            self._ready[clique].discard(record.uid)
        for uid in list(self._dependants.get(clique, ())):
            self._look(uid)

    def _await(self, record: Record, clique: str) -> None:
        wanted = self._sets.get(label(record.object, PART_OF))
        place = startup.seat(wanted, clique, labels(record.object)) if wanted is not None else None
        try:
            parents = startup.parents(wanted, place) if wanted is not None and place is not None else None
        except KeyError:  # startsAfter names a clique that the set does not have: admission deals with that
            return
        if not parents:
            return
        self._dependent.add(record.uid)
        self._waiting[record.uid] = parents
        for parent in parents:
            self._dependants[parent].add(record.uid)
        self._look(record.uid)

    def _look(self, uid: str) -> None:
        """End a wait whose condition holds now."""
        if not self._lacks(self._waiting[uid]):
            self._done(uid)

    def _done(self, uid: str) -> None:
        for parent in self._waiting.pop(uid, {}):
            self._dependants[parent].discard(uid)

    def _lacks(self, parents: dict[str, int]) -> list[str]:
        return [
            f"{parent} had {len(self._ready[parent])} of {minimum} pods Ready"
            for parent, minimum in parents.items()
            if len(self._ready[parent]) < minimum
        ]

    def _judge(self, record: Record, clique: str) -> None:
        if self._violation is None:
            lack = ", ".join(self._lacks(self._waiting[record.uid])) or "its parents were never Ready at one moment"
            self._violate(f"pod {record.name} of {clique} became Ready while {lack}", record)
        self._done(record.uid)
