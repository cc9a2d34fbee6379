"""How long a wait may last: in full, until one has timed out for an implementation that has done nothing at all.

An implementation that writes nothing (not completely installed, deaf, crashed at start) would otherwise cost a whole
timeout per test, and its user the better part of an hour. Nothing is judged more strictly: the first write makes all
later waits full again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from conformance.grove import pods
from conformance.grove.fields import label, text
from conformance.grove.labels import BOUND, BY_HAND, GANG
from conformance.history.view import View

LIFELESS_SECONDS = 3.0
"""Seconds that a wait still lasts, at time scale 1, while there was no sign of life."""

LIFELESS = "the implementation has not made or written anything in this run"
UNBINDING = "the implementation has not bound any pod in this run"

_MADE = ("podcliques", "podcliquescalinggroups", "podgangs")
"""Resources that only an implementation creates, unless the suite did instead (labels.BY_HAND)."""


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

    def note(self, view: View) -> None:
        """Note the state at the end of a wait that timed out."""
        self._alive = self._alive or (alive(view) if self._operator else _binds(view))
        self._let_down = not self._alive


def alive(view: View) -> bool:
    """Return whether an implementation has done anything: created an object, bound a pod, or written to a set."""
    if any(not label(found, BY_HAND) for plural in _MADE for found in view.list(plural)):
        return True
    if any(label(pod, BY_HAND) and pods.bound(pod) and not _bound_by_hand(pod) for pod in view.list("pods")):
        return True
    sets = (view.get("podcliquesets", name) or {} for name in view.names("podcliquesets"))
    return any(pcs.get("status") or pcs.get("metadata", {}).get("finalizers") for pcs in sets)


def _binds(view: View) -> bool:
    """Return whether somebody other than the suite has bound a pod of a gang: of schedulers, only the judged one
    does."""
    return any(label(pod, GANG) and pods.bound(pod) and not _bound_by_hand(pod) for pod in view.list("pods"))


def _bound_by_hand(pod: Mapping[str, Any]) -> bool:
    return bool(text(pod, "metadata", "annotations", BOUND))
