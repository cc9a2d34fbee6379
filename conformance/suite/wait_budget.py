"""How long a wait may last: in full, until one has timed out for an implementation that has done nothing at all.

An implementation that writes nothing (not completely installed, deaf, crashed at start) would otherwise cost a whole
timeout per test, and its user the better part of an hour. Nothing is judged more strictly: the first write makes all
later waits full again.
"""

from __future__ import annotations

from collections.abc import Collection

from conformance.grove import pods
from conformance.grove.fields import label
from conformance.grove.labels import GANG
from conformance.history.origins import Origins
from conformance.history.record import Record
from conformance.history.view import View

LIFELESS_SECONDS = 3.0
"""Seconds that a wait still lasts, at time scale 1, while there was no sign of life."""

LIFELESS = "the implementation has not made or written anything in this run"
UNBINDING = "the implementation has not bound any pod in this run"

_MADE = ("podcliques", "podcliquescalinggroups", "podgangs")
"""Resources that only an implementation creates, unless the suite did instead."""


class WaitBudget:
    """What one worker knows about signs of life of the implementation, which plays these roles."""

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

    def note(self, view: View, origins: Origins) -> None:
        """Note the state at the end of a wait that timed out."""
        self._alive = self._alive or (alive(view, origins) if self._operator else binds(view, origins))
        self._let_down = not self._alive


def alive(view: View, origins: Origins) -> bool:
    """Return whether an implementation has done anything: created an object, bound a pod, or written to a set."""
    if any(found.uid not in origins.by_hand for plural in _MADE for found in view.records(plural)):
        return True
    if any(pod.uid in origins.by_hand and _bound(pod, origins) for pod in view.records("pods")):
        return True
    sets = (view.get("podcliquesets", name) or {} for name in view.names("podcliquesets"))
    return any(pcs.get("status") or pcs.get("metadata", {}).get("finalizers") for pcs in sets)


def binds(view: View, origins: Origins) -> bool:
    """Return whether somebody other than the suite has bound a pod of a gang: of schedulers, only the judged one
    does."""
    return any(label(pod.object, GANG) and _bound(pod, origins) for pod in view.records("pods"))


def _bound(pod: Record, origins: Origins) -> bool:
    """Return whether a pod has a node that the suite did not create it with."""
    made = origins.by_hand.get(pod.uid)
    return pods.bound(pod.object) and not (made is not None and made.bound)
