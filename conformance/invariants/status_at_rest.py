"""INV-007: no status is written at rest (OBJ-701)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.grove import updates
from conformance.grove.fields import at, condition_is, items, number, terminating
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, MODIFIED, Record
from conformance.invariants.invariant import Invariant

REST_SECONDS = 10.0
"""Seconds without a change after which a set is at rest. An operator that reconciles every five seconds has reconciled
twice by then."""
JUDGED_RESOURCES = frozenset({"podcliques", "podcliquescalinggroups", "podcliquesets"})
"""Gangs are left out: their status has two writers."""
STATUS_ORDER = ("podcliques", "podgangs", "podcliquescalinggroups", "podcliquesets")
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
        """`unrest`: time spans that, like the `REST_SECONDS` after each, do not count as rest, regardless of the
        records."""
        super().__init__()
        self._unrest = unrest
        self._last_change = float("-inf")
        self._objects: dict[str, Record] = {}
        self._unsettled_uids: set[str] = set()
        self._settled_uids: set[str] = set()
        """UIDs of objects whose status was written after every change that may be a reason for writing it."""
        self._nodes: dict[str, object] = {}
        self._has_rested = False

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge writes of statuses, and track other changes."""
        is_at_rest = self._is_at_rest(record.at)
        self._has_rested = self._has_rested or is_at_rest
        if record.resource == "nodes":
            if self._is_node_changed(record):
                self._last_change = record.at
                self._settled_uids.clear()
            return
        before, is_idle = self._objects.get(record.uid), False
        if before is not None and _is_status_write(before, record):
            is_idle = (
                record.uid in self._settled_uids and record.resource in JUDGED_RESOURCES and not _has_trouble(before)
            )
            if is_at_rest and is_idle:
                rest = f"{record.at - self._last_change:.1f} s after anything had changed"
                self._report_violation(
                    f"the status of {record.resource}/{record.name} was written {rest}", before, record
                )
            self._settled_uids = {uid for uid in self._settled_uids if not self._may_follow(uid, before, record)}
            if _is_observed(before):  # otherwise this may be the first of several writes
                self._settled_uids.add(record.uid)
        else:
            self._settled_uids.clear()
        if not is_idle:
            self._last_change = record.at
        self._objects[record.uid] = record
        if record.kind == DELETED or not _unsettled_uids(record):
            self._unsettled_uids.discard(record.uid)
        else:
            self._unsettled_uids.add(record.uid)

    def _unknown_reason(self, gangs: Gangs, node_state: float) -> str:
        return "" if self._has_rested or self._is_at_rest(node_state) else f"nothing was at rest for {REST_SECONDS:g} s"

    def _is_at_rest(self, moment: float) -> bool:
        if moment - self._last_change < REST_SECONDS or self._unsettled_uids:
            return False
        if any(start <= moment < end + REST_SECONDS for start, end in self._unrest):
            return False
        return any(record.resource in JUDGED_RESOURCES and record.kind != DELETED for record in self._objects.values())

    def _may_follow(self, uid: str, before: Record, record: Record) -> bool:
        """Return whether a write of one status may be a reason to write the status of the object `uid`: the status of
        an owner counts its members, and members follow the updates of their owner."""
        is_earlier = STATUS_ORDER.index(record.resource) < STATUS_ORDER.index(self._objects[uid].resource)
        return is_earlier or _revision(before) != _revision(record)

    def _is_node_changed(self, record: Record) -> bool:
        """Return whether a node was added, removed or changed. Heartbeats do not count as changes."""
        node_state = (record.kind == DELETED, at(record.object, "spec"), at(record.object, "status", "allocatable"))
        previous, self._nodes[record.uid] = self._nodes.get(record.uid), node_state
        return previous != node_state


def _is_status_write(before: Record, record: Record) -> bool:
    """Return whether a record is a write that changes a status and no field that users write."""
    if record.resource not in STATUS_ORDER or record.kind != MODIFIED or record.listed or terminating(record.object):
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


def _unsettled_uids(record: Record) -> bool:
    return _has_trouble(record) or (record.resource in JUDGED_RESOURCES and not _is_observed(record))


def _has_trouble(record: Record) -> bool:
    document = record.object
    is_breached = condition_is(document, "MinAvailableBreached") == "True"
    return is_breached or terminating(document) or bool(items(document, "status", "lastErrors"))


def _is_observed(record: Record) -> bool:
    document = record.object
    return number(document, "status", "observedGeneration") == number(document, "metadata", "generation")
