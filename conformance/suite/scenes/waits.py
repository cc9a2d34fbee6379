"""The waits of a test on the history, which end when the wait budget is used up or the implementation has nothing left
to do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from conformance.grove.fields import decimal
from conformance.history.query import History, Unmet, WaitTimeout
from conformance.history.record import Record
from conformance.history.view import View
from conformance.suite.scenes.machine import MAX_EXTENSION, NEGLIGIBLE_SECONDS, Machine
from conformance.suite.scenes.silence import SILENCE_SECONDS, Silence, delay
from conformance.suite.scenes.wait_budget import WaitBudget

R = TypeVar("R")

OWN_WRITE_SECONDS = 5.0
"""Seconds within which the recorder must receive the suite's own writes."""
MIN_QUIET_SECONDS = 0.5
"""Minimum length of a quiet time in seconds at any time scale: on a busy machine, a shorter time does not indicate
rest."""
SILENCE_MESSAGE = "nothing moves, and the implementation has sent no new request for"
_UNREADABLE = (KeyError, IndexError, TypeError, AttributeError, ValueError)


class Waits:
    """The waits of one test. `silence` is None if the requests of the implementation cannot be observed.

    A time scale below 1 shortens a wait only if the implementation does nothing, not while it is active. Time in which
    the machine was too slow does not count towards a wait or a quiet time.
    """

    def __init__(
        self,
        history: History,
        wait_budget: WaitBudget,
        silence: Silence | None,
        time_scale: float,
        machine: Machine | None = None,
    ) -> None:
        self._history, self._wait_budget, self._silence, self._scale = history, wait_budget, silence, time_scale
        self._machine = machine or Machine()

    def wait(
        self,
        description: str,
        predicate: Callable[[View], R | Unmet | None],
        timeout: float,
        *,
        is_hopeless: Callable[[], object],
        real: bool = False,
        resources: Sequence[str] | None = None,
    ) -> R:
        """Run `History.wait`, which raises WaitTimeout. `real`: neither the time scale nor silence shortens the wait.

        Raises HarnessError if the machine was too slow for too long.
        """
        start = self._history.now()
        try:
            return self._wait_extended(description, predicate, timeout, is_hopeless, real, resources)
        except WaitTimeout as error:
            error.timeout = self._history.now() - start
            if not real and self._is_silent(timeout):
                error.timeout = max(error.timeout, self._still())  # nothing has changed since then
            raise

    def _wait_extended(
        self,
        description: str,
        predicate: Callable[[View], R | Unmet | None],
        timeout: float,
        is_hopeless: Callable[[], object],
        real: bool,
        resources: Sequence[str] | None,
    ) -> R:
        """Wait, and extend the wait by the time in which the machine was too slow."""
        start, extension, length = self._machine.now(), 0.0, timeout
        while True:
            try:
                return self._wait(description, predicate, length, is_hopeless, real, resources)
            except WaitTimeout:
                if (
                    is_hopeless()
                    or (slow_seconds := self._machine.slow_seconds(start) - extension) < NEGLIGIBLE_SECONDS
                ):
                    raise
                if extension >= MAX_EXTENSION * timeout:
                    raise self._machine.too_slow(start, f'"{description}" was not seen') from None
                extension, length = (
                    extension + slow_seconds,
                    slow_seconds if real else slow_seconds / min(1.0, self._scale),
                )

    def _wait(
        self,
        description: str,
        predicate: Callable[[View], R | Unmet | None],
        timeout: float,
        is_hopeless: Callable[[], object],
        real: bool,
        resources: Sequence[str] | None,
    ) -> R:
        patient_scale = max(1.0, self._scale)
        scale = patient_scale if real else self._scale
        guarded, limit = _guarded(predicate), self._wait_budget.limit(timeout, scale)
        max_seconds = 0 if self._wait_budget.is_shortened else timeout * patient_scale

        def cannot_succeed() -> bool:
            return bool(is_hopeless()) or (not real and self._is_silent(timeout))

        start = self._machine.now()
        arguments: dict[str, Any] = {"max_seconds": max_seconds, "resources": resources, "is_hopeless": cannot_succeed}
        try:
            return self._history.wait(description, guarded, limit, **arguments)
        except WaitTimeout:
            # On a slow machine, a timeout does not mean that the implementation is dead.
            if self._machine.slow_seconds(start) < NEGLIGIBLE_SECONDS:
                self._wait_budget.timed_out(self._history)
            remaining = timeout * scale - limit
            if remaining <= 0 or self._wait_budget.is_shortened or cannot_succeed():
                raise
            return self._history.wait(description, guarded, remaining, **arguments)  # it is not dead after all

    def quiet(
        self,
        seconds: float,
        timeout: float,
        *,
        real: bool,
        of: Collection[str],
        settle: float,
        unless: Callable[[View], bool],
    ) -> None:
        """Block until no resource in `of` has changed for `seconds`, or for `settle` seconds if that is longer, or
        until `unless` holds after a change or the time is up."""
        patient_scale = max(1.0, self._scale)
        quiet_seconds = seconds if real else max(seconds * self._scale, min(seconds, MIN_QUIET_SECONDS))
        additional_seconds = max(0.0, settle * patient_scale - quiet_seconds)
        with contextlib.suppress(WaitTimeout):
            for _ in range(1 + MAX_EXTENSION):
                self._history.quiet(
                    quiet_seconds + additional_seconds,
                    timeout * patient_scale + additional_seconds,
                    resources=of,
                    unless=unless,
                )
                seconds_slow = self._machine.slow_seconds(self._machine.now() - quiet_seconds - additional_seconds)
                if seconds_slow <= 0 or unless(self._history.live_view):
                    return

    def for_write(self, resource: str, name: str, version: str) -> None:
        """Wait until the history contains the suite's own write, if the object is recorded."""
        with contextlib.suppress(WaitTimeout):
            self._history.wait(
                "our own write", lambda view: _includes(view.record(resource, name), version), OWN_WRITE_SECONDS
            )

    def lifeless_reason(self, last_words: Callable[[], str]) -> str:
        """Return a message about an implementation that has done nothing in this run, with the ends of its logs; empty
        if waits are not shortened."""
        return (
            "; ".join(filter(None, (self._wait_budget.lifeless_reason, last_words())))
            if self._wait_budget.is_shortened
            else ""
        )

    def silence_reason(self, timeout: float) -> str:
        """Return the reason why a wait with this timeout ended early; empty if it did not."""
        return f"{SILENCE_MESSAGE} {self._still():.0f} s" if self._is_silent(timeout) else ""

    def _is_silent(self, timeout: float) -> bool:
        """Return whether nothing more is to be expected from the implementation (silence.py)."""
        if self._silence is None:
            return False
        minimum = SILENCE_SECONDS * max(1.0, self._scale) + delay(self._history.live_view, timeout)
        minimum += self._machine.slow_seconds(self._machine.now() - self._history.idle_seconds)
        return self._silence.is_lasting(self._history.idle_seconds, minimum)

    def _still(self) -> float:
        """Return the number of seconds since the last change or new request of the implementation."""
        return self._silence.lasts(self._history.idle_seconds) if self._silence is not None else 0.0


def _includes(record: Record | None, version: str) -> bool:
    """Return whether a record has this resourceVersion or a later one. Return True for objects that are not recorded or
    do not exist."""
    revision = decimal(version)
    return record is None or revision is None or record.revision >= revision


def _guarded(predicate: Callable[[View], R]) -> Callable[[View], R | Unmet]:
    """Wrap a predicate so that it does not hold, instead of raising, if it cannot read a malformed object."""

    def guarded(view: View) -> R | Unmet:
        try:
            return predicate(view)
        except _UNREADABLE as error:
            return Unmet(f"unreadable: {type(error).__name__}: {error}")

    return guarded
