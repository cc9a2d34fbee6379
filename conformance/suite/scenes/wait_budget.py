"""The time that a wait may last: its full timeout, until a wait has timed out for an implementation that has done
nothing at all.

Otherwise an implementation that writes nothing (because it is incompletely installed, does not respond, or crashed at
startup) would cost a whole timeout per test, and its user most of an hour. Nothing is judged more strictly: after the
first write, all later waits have their full length again.
"""

from __future__ import annotations

from collections.abc import Collection

from conformance.grove import pods
from conformance.grove.fields import at, label
from conformance.grove.labels import GANG
from conformance.history.origins import Origins
from conformance.history.query import History
from conformance.history.record import Record

LIFELESS_SECONDS = 3.0
"""Seconds that a shortened wait lasts, at time scale 1, while there has been no sign of life."""

NOTHING_WRITTEN = "the implementation has not made or written anything in this run"
NOTHING_BOUND = "the implementation has not bound any pod in this run"

_IMPLEMENTATION_RESOURCES = ("podcliques", "podcliquescalinggroups", "podgangs")
"""Resources that only an implementation creates, except objects that the suite creates in its place."""
_KUBERNETES_FINALIZERS = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers that the API server adds to objects that the suite deletes."""


class WaitBudget:
    """The signs of life of the implementation, which plays these roles, as seen by one worker."""

    def __init__(self, roles: Collection[str] = ("operator",)) -> None:
        self._is_alive = self._has_timed_out = False
        self._operator = "operator" in roles

    @property
    def lifeless_reason(self) -> str:
        """Return a message about what the implementation has not done in this run; empty if waits are not shortened."""
        return (NOTHING_WRITTEN if self._operator else NOTHING_BOUND) if self.is_shortened else ""

    @property
    def is_shortened(self) -> bool:
        """Return whether waits are shortened."""
        return self._has_timed_out and not self._is_alive

    def limit(self, seconds: float, scale: float) -> float:
        """Return the current length, in real seconds, of a wait of `seconds`."""
        return min(seconds, LIFELESS_SECONDS) * scale if self.is_shortened else seconds * scale

    def timed_out(self, history: History) -> None:
        """Record that a wait has timed out."""
        self.look(history)
        self._has_timed_out = not self._is_alive

    def look(self, history: History) -> None:
        """Look for signs of life in all records of a history, including records of objects that no longer exist."""
        is_sign = shows_life if self._operator else shows_binding
        records = history.log.records_after(history.namespace, 0) if not self._is_alive else ()
        self._is_alive = self._is_alive or any(is_sign(record, history.origins) for record in records)


def shows_life(record: Record, origins: Origins) -> bool:
    """Return whether a record shows that an implementation has done anything: created an object, bound a pod, or
    written to a set."""
    if record.resource in _IMPLEMENTATION_RESOURCES:
        return record.uid not in origins.by_hand
    if record.resource == "pods":
        return record.uid in origins.by_hand and _is_bound_by_other(record, origins)
    if record.resource == "podcliquesets":
        finalizers = record.object.get("metadata", {}).get("finalizers") or ()
        return bool(record.object.get("status")) or not _KUBERNETES_FINALIZERS.issuperset(finalizers)
    return False


def shows_binding(record: Record, origins: Origins) -> bool:
    """Return whether a record shows that a client other than the suite has bound a pod of a gang, which only the judged
    scheduler does."""
    belongs_to_gang = label(record.object, GANG) or at(record.object, "spec", "schedulingGroup")
    return record.resource == "pods" and bool(belongs_to_gang) and _is_bound_by_other(record, origins)


def _is_bound_by_other(pod: Record, origins: Origins) -> bool:
    """Return whether a pod is bound and the suite did not create it with a nodeName."""
    origin = origins.by_hand.get(pod.uid)
    return pods.is_bound(pod.object) and not (origin is not None and origin.bound)
