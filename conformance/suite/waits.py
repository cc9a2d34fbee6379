"""How a test waits for the history: no longer than its patience lasts, and than the implementation may still act."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from conformance.history.query import History, Unmet, WaitTimeout
from conformance.history.view import View
from conformance.suite.silence import SILENCE, Silence, delay
from conformance.suite.wait_budget import LIFELESS, WaitBudget

R = TypeVar("R")

SILENT = f"nothing moves, and the implementation has sent no request for {SILENCE:g} s"
_UNREADABLE = (KeyError, IndexError, TypeError, AttributeError, ValueError)


class Waits:
    """The waits of one test. `silence` is None where the requests of the implementation cannot be seen.

    A time scale below 1 shortens a wait for an implementation that does nothing, and not for one that is at work.
    """

    def __init__(self, history: History, wait_budget: WaitBudget, silence: Silence | None, time_scale: float) -> None:
        self._history, self._patience, self._silence, self._scale = history, wait_budget, silence, time_scale

    def wait(
        self,
        what: str,
        predicate: Callable[[View], R | Unmet | None],
        timeout: float,
        *,
        hopeless: Callable[[], object],
        real: bool = False,
        resources: Sequence[str] | None = None,
    ) -> R:
        """`History.wait`, which raises WaitTimeout. `real`: no time scale and no silence shortens the wait."""
        unhurried = max(1.0, self._scale)
        scale = unhurried if real else self._scale
        careful, limit = _careful(predicate), self._patience.limit(timeout, scale)
        longest = 0 if self._patience.lost else timeout * unhurried

        def in_vain() -> bool:
            return bool(hopeless()) or (not real and self._over(timeout))

        how: dict[str, Any] = {"longest": longest, "resources": resources, "hopeless": in_vain}
        try:
            return self._history.wait(what, careful, limit, **how)
        except WaitTimeout as error:
            self._patience.note(error.view)
            rest = timeout * scale - limit
            if rest <= 0 or self._patience.lost or in_vain():
                raise
            return self._history.wait(what, careful, rest, **how)  # it lives after all

    def lifeless(self) -> str:
        """What to say of an implementation that has done nothing in this run; empty if it has."""
        return LIFELESS if self._patience.lost else ""

    def silent(self, timeout: float) -> str:
        """Why a wait of `timeout` seconds that was in vain has ended early; empty if it has not."""
        return SILENT if self._over(timeout) else ""

    def _over(self, timeout: float) -> bool:
        """Whether nothing more is to be expected of the implementation (silence.py)."""
        if self._silence is None:
            return False
        least = SILENCE * max(1.0, self._scale) + delay(self._history.arrived, timeout)
        return self._silence.over(self._history.still, least)


def _careful(predicate: Callable[[View], R]) -> Callable[[View], R | Unmet]:
    """The predicate, which has not seen what it waits for where it cannot read what it finds."""

    def careful(view: View) -> R | Unmet:
        try:
            return predicate(view)
        except _UNREADABLE as error:
            return Unmet(f"unreadable: {type(error).__name__}: {error}")

    return careful
