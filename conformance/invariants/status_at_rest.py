"""INV-007: no status is written at rest (OBJ-701)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.grove import updates
from conformance.grove.fields import at, condition_is, items, number, terminating
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, MODIFIED, Record
from conformance.invariants.invariant import Invariant

REST = 10.0
"""Seconds without a change after which a set is at rest. An operator that reconciles every five seconds has reconciled
twice by then."""
JUDGED = frozenset({"podcliques", "podcliquescalinggroups", "podcliquesets"})
"""Gangs are left out: their status has two writers."""
ORDER = ("podcliques", "podgangs", "podcliquescalinggroups", "podcliquesets")
"""The status of a resource depends on the statuses of the resources before it in this list."""


class NoStatusWritesAtRest(Invariant):
    """INV-007. Only statuses are judged, because users also write specs, labels and annotations. While an object is
    breached, has errors, is being deleted, or has a generation that is not observed yet (CHG-S132), more changes are
    expected, and nothing is at rest.

    Time alone does not prove rest, because an operator may be slow. A status is settled only if it has been written
    since the last change that may be a reason for writing it. Another write of a settled status is idle, and does not
    end the rest.
    """

    timed = True
    id = "INV-007"
    statement = "nothing is written to the status of a set, clique or scaling group once all has come to rest"

    def __init__(self, unrest: Sequence[tuple[float, float]] = ()) -> None:
        """`unrest`: time spans that, like the `REST` seconds after each, do not count as rest, regardless of the
        records."""
        super().__init__()
        self._unrest = unrest
        self._stirred = float("-inf")
        self._objects: dict[str, Record] = {}
        self._unsettled: set[str] = set()
        self._settled: set[str] = set()
        """UIDs of objects whose status was written after every change that may be a reason for writing it."""
        self._nodes: dict[str, object] = {}
        self._rested = False

    def see(self, record: Record, gangs: Gangs) -> None:
        """Judge writes of statuses, and track other changes."""
        at_rest = self._at_rest(record.at)
        self._rested = self._rested or at_rest
        if record.resource == "nodes":
            if self._changed(record):
                self._stirred = record.at
                self._settled.clear()
            return
        before, idle = self._objects.get(record.uid), False
        if before is not None and _status_written(before, record):
            idle = record.uid in self._settled and record.resource in JUDGED and not _in_trouble(before)
            if at_rest and idle:
                rest = f"{record.at - self._stirred:.1f} s after anything had changed"
                self._violate(f"the status of {record.resource}/{record.name} was written {rest}", before, record)
            self._settled = {uid for uid in self._settled if not self._follows(uid, before, record)}
            if _observed(before):  # otherwise this may be the first of several writes
                self._settled.add(record.uid)
        else:
            self._settled.clear()
        if not idle:
            self._stirred = record.at
        self._objects[record.uid] = record
        if record.kind == DELETED or not _unsettled(record):
            self._unsettled.discard(record.uid)
        else:
            self._unsettled.add(record.uid)

    def _unknown(self, gangs: Gangs, now: float) -> str:
        return "" if self._rested or self._at_rest(now) else f"nothing was at rest for {REST:g} s"

    def _at_rest(self, moment: float) -> bool:
        if moment - self._stirred < REST or self._unsettled:
            return False
        if any(begin <= moment < end + REST for begin, end in self._unrest):
            return False
        return any(record.resource in JUDGED and record.kind != DELETED for record in self._objects.values())

    def _follows(self, uid: str, before: Record, record: Record) -> bool:
        """Return whether a write of one status may be a reason to write the status of the object `uid`: the status of
        an owner counts its members, and members follow the updates of their owner."""
        below = ORDER.index(record.resource) < ORDER.index(self._objects[uid].resource)
        return below or _revision(before) != _revision(record)

    def _changed(self, record: Record) -> bool:
        """Return whether a node was added, removed or changed. Heartbeats do not count as changes."""
        now = (record.kind == DELETED, at(record.object, "spec"), at(record.object, "status", "allocatable"))
        previous, self._nodes[record.uid] = self._nodes.get(record.uid), now
        return previous != now


def _status_written(before: Record, record: Record) -> bool:
    """Return whether a record is a write that changes a status and no field that users write."""
    if record.resource not in ORDER or record.kind != MODIFIED or record.listed or terminating(record.object):
        return False
    return _user_fields(before.object) == _user_fields(record.object) and before.object.get(
        "status"
    ) != record.object.get("status")


def _user_fields(document: Mapping[str, object]) -> tuple[object, ...]:
    """Return the parts of an object that change when users write it. If they are unchanged, the operator wrote the
    object."""
    metadata = at(document, "metadata")
    return number(metadata, "generation"), at(metadata, "labels"), at(metadata, "annotations")


def _revision(record: Record) -> tuple[object, ...]:
    document = record.object
    return updates.progress(document), updates.generation_hash(document), updates.reached_hashes(document)


def _unsettled(record: Record) -> bool:
    return _in_trouble(record) or (record.resource in JUDGED and not _observed(record))


def _in_trouble(record: Record) -> bool:
    document = record.object
    breached = condition_is(document, "MinAvailableBreached") == "True"
    return breached or terminating(document) or bool(items(document, "status", "lastErrors"))


def _observed(record: Record) -> bool:
    document = record.object
    return number(document, "status", "observedGeneration") == number(document, "metadata", "generation")
