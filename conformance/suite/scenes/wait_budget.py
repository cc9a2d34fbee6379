"""The time that a wait may last: all of it, until one has timed out for an implementation that has done nothing at all.

An implementation that writes nothing (not completely installed, deaf, crashed at start) would otherwise cost a whole
timeout per test, and its user the better part of an hour. Nothing is judged more strictly: the first write makes all
later waits full again.
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
"""Seconds that a wait still lasts, at time scale 1, while there was no sign of life."""

LIFELESS = "the implementation has not made or written anything in this run"
UNBINDING = "the implementation has not bound any pod in this run"

_MADE = ("podcliques", "podcliquescalinggroups", "podgangs")
"""Resources that only an implementation creates, unless the suite did instead."""
_OF_KUBERNETES = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers that the API server adds to what the suite deletes."""


class WaitBudget:
    """Signs of life of the implementation, which plays these roles, as one worker knows them."""

    def __init__(self, roles: Collection[str] = ("operator",)) -> None:
        self._alive = self._let_down = False
        self._operator = "operator" in roles

    @property
    def lifeless(self) -> str:
        """Return what the implementation has not done in this run; empty if waits are not shortened."""
        return (LIFELESS if self._operator else UNBINDING) if self.lost else ""

    @property
    def lost(self) -> bool:
        """Return whether waits are shortened."""
        return self._let_down and not self._alive

    def limit(self, seconds: float, scale: float) -> float:
        """Return how long a wait of `seconds` lasts now, in real seconds."""
        return min(seconds, LIFELESS_SECONDS) * scale if self.lost else seconds * scale

    def timed_out(self, history: History) -> None:
        """Note that a wait has timed out."""
        self.look(history)
        self._let_down = not self._alive

    def look(self, history: History) -> None:
        """Look for signs of life in everything that has arrived in a history: what is gone by now counts as well."""
        sign = alive if self._operator else binds
        records = history.log.beyond(history.namespace, 0) if not self._alive else ()
        self._alive = self._alive or any(sign(record, history.origins) for record in records)


def alive(record: Record, origins: Origins) -> bool:
    """Return whether a record shows that an implementation has done anything: created an object, bound a pod, or
    written to a set."""
    if record.resource in _MADE:
        return record.uid not in origins.by_hand
    if record.resource == "pods":
        return record.uid in origins.by_hand and _bound(record, origins)
    if record.resource == "podcliquesets":
        finalizers = record.object.get("metadata", {}).get("finalizers") or ()
        return bool(record.object.get("status")) or not _OF_KUBERNETES.issuperset(finalizers)
    return False


def binds(record: Record, origins: Origins) -> bool:
    """Return whether a record shows that somebody other than the suite has bound a pod of a gang: of schedulers, only
    the judged one does."""
    of_gang = label(record.object, GANG) or at(record.object, "spec", "schedulingGroup")
    return record.resource == "pods" and bool(of_gang) and _bound(record, origins)


def _bound(pod: Record, origins: Origins) -> bool:
    """Return whether a pod has a node that the suite did not create it with."""
    origin = origins.by_hand.get(pod.uid)
    return pods.bound(pod.object) and not (origin is not None and origin.bound)
