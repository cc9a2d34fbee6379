"""How long a wait may last: in full, until an implementation has let one pass without having done anything at all.

One that writes nothing (not installed in full, deaf, crashed at start) would else cost a whole time-out a test, and
its user the better part of an hour. Nothing is judged more strictly: the first sign of life gives full waits for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.grove import pods
from conformance.grove.fields import label, text
from conformance.grove.labels import BOUND, BY_HAND
from conformance.history.view import View

LIFELESS_SECONDS = 3.0
"""Seconds that a wait still lasts, at time scale 1, while there was no sign of life."""

LIFELESS = "the implementation has not made or written anything in this run"

_MADE = ("podcliques", "podcliquescalinggroups", "podgangs")
"""What only an implementation makes, unless the suite did in its place (labels.BY_HAND)."""


class WaitBudget:
    """What one worker knows of the implementation's liveliness."""

    def __init__(self) -> None:
        self._alive = self._let_down = False

    @property
    def lost(self) -> bool:
        return self._let_down and not self._alive

    def limit(self, seconds: float, scale: float) -> float:
        """How long a wait of `seconds` lasts now, in real seconds."""
        return min(seconds, LIFELESS_SECONDS) * scale if self.lost else seconds * scale

    def note(self, view: View) -> None:
        """The state at the end of a wait that was in vain."""
        self._alive = self._alive or alive(view)
        self._let_down = not self._alive


def alive(view: View) -> bool:
    """Whether an implementation has done anything: made an object, or written to a set."""
    if any(not label(found, BY_HAND) for plural in _MADE for found in view.list(plural)):
        return True
    if any(label(pod, BY_HAND) and pods.bound(pod) and not _bound_by_hand(pod) for pod in view.list("pods")):
        return True
    sets = (view.get("podcliquesets", name) or {} for name in view.names("podcliquesets"))
    return any(pcs.get("status") or pcs.get("metadata", {}).get("finalizers") for pcs in sets)


def _bound_by_hand(pod: Mapping[str, Any]) -> bool:
    return bool(text(pod, "metadata", "annotations", BOUND))
