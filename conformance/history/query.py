"""Waits for and queries of changes in one namespace. Nothing polls: waits block on the log's condition variable."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from conformance.errors import HarnessError
from conformance.history import circles, storage
from conformance.history.log import Completeness, Log
from conformance.history.origins import Origins
from conformance.history.record import Record
from conformance.history.summary import describe, overview
from conformance.history.view import View

P = ParamSpec("P")
R = TypeVar("R")

PASSIVE_RESOURCES = frozenset({"events"})
"""Resources whose records do not advance a wait and are not checked for completeness: there are many Events, and they
are only informative."""


ALWAYS_CHANGING_RESOURCES = frozenset({"events", "leases"})
"""Resources that also change while the cluster is idle."""

ACTIVITY_RESOURCES = ("pods", "podgangs", "podcliques", "podcliquescalinggroups", "podcliquesets")
"""Resources whose records show that the implementation, or something that it has started, is active."""

IDLE_SECONDS = 5.0
"""Seconds without a record after which the cluster is idle."""

COMPLETENESS_SECONDS = 30.0
"""Seconds within which each stream must reach the current revision. If the API server has refused no list, the recorder
waits several times as long (`recorder.SLOW_FACTOR`)."""

FRESH_SECONDS = 1.0
"""Seconds for which the result of a completeness check is reused while no record arrives."""

POLL_SECONDS = 1.0
"""Seconds after which a wait checks again whether it can still succeed."""


class Unmet:
    """The result of a predicate that does not hold: a human-readable reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.reason


WaitCondition = Callable[[View], R | Unmet | None]
"""Called with the state after each record. None, False and an Unmet mean that the condition does not hold. The function
must not keep the view (view.py)."""

Predicate = Callable[[View], bool | Unmet]
"""The condition of a wait; an Unmet says what is missing."""


def predicate(judge: Callable[Concatenate[View, P], R]) -> Callable[P, Callable[[View], R]]:
    """Turn `f(view, *args)` into `f(*args)`, which returns a predicate that calls `f` with each state."""

    @functools.wraps(judge)
    def with_arguments(*args: P.args, **kwargs: P.kwargs) -> Callable[[View], R]:
        return lambda view: judge(view, *args, **kwargs)

    return with_arguments


class WaitTimeout(Exception):
    """A wait timed out: what `description` says did not happen within `timeout` seconds. `unmet` is the last reason
    that the predicate gave (empty for none), `view` the last state, `latest` the last changes."""

    def __init__(self, description: str, timeout: float, unmet: str, view: View, latest: list[Record]) -> None:
        self.description, self.timeout, self.unmet, self.view, self.latest = description, timeout, unmet, view, latest
        super().__init__(description)

    def __str__(self) -> str:
        lines = [f"not seen within {self.timeout:.0f} s: {self.description}"]
        if self.unmet:
            lines.append(f"nearest: {self.unmet}")
        lines += ["last state:", *(f"  {line}" for line in overview(self.view))]
        lines += ["changed last:", *(f"  {describe(record)}" for record in self.latest)] if self.latest else []
        return "\n".join(lines)


class Withheld(HarnessError):
    """The recorder has not received all changes, because a stream lags or the API server refuses to list a resource.
    The message has the API server's response, if there was one."""


class History:
    """The history of one namespace, together with the cluster-scoped objects. For one thread at a time.

    The log may be a running Recorder, a hand-made log, or a log loaded from a file.
    """

    def __init__(self, log: Log, namespace: str) -> None:
        self.log, self.namespace = log, namespace
        self._live_view = View()
        self._inbox: deque[Record] = deque()
        self._position = 0
        self._latest: deque[Record] = deque(maxlen=5)
        self._last_activity = float("-inf")
        self._last_change = log.now()
        self._repetitions = circles.RepetitionCounter()
        self._is_evaluating = False
        """Whether a predicate is being called; a predicate sees only records that have arrived."""
        self._has_ended = False
        self._last_check = -1, log.now(), Completeness()
        """The last completeness check: the number of the last record before the check, its time, and its result."""
        self.unrest: list[tuple[float, float]] = []
        """Time spans in which something happened that has no record, for example another operator took over."""
        self.origins = Origins()
        """Facts about the objects that follow from their writers."""

    @property
    def live_view(self) -> View:
        """Return the live view of the records that have arrived. The view changes later, so do not keep it."""
        return self._live_view

    @property
    def idle_seconds(self) -> float:
        """Return the seconds since an object of the namespace entered a new state or the test did something
        (`record_action`)."""
        return self.now() - self._last_change

    def record_action(self) -> None:
        """Record that the test did something that may not cause a record in the namespace."""
        self._last_change = self.now()
        self._repetitions.forget()

    def now(self) -> float:
        """Return the seconds since the recorder started."""
        return self.log.now()

    def end(self) -> None:
        """Treat the records that have arrived as the complete history: nothing waits for more."""
        self._has_ended = True

    def wait_until_complete(self) -> Completeness:
        """Wait until the streams of all resources have reached the current revision, so that their objects can be
        compared. If `lagging` of the result names resources, the current state is not known."""
        last_seq = self.log.last_seq()
        checked_seq, at, _ = self._last_check
        if (
            not self._is_evaluating
            and not self._has_ended
            and (checked_seq != last_seq or self.now() - at > FRESH_SECONDS)
        ):
            wait_until_complete = self.log.complete(self.namespace, COMPLETENESS_SECONDS)
            self._last_check = last_seq, self.now(), wait_until_complete
        return self._last_check[2]

    def mark(self) -> int:
        """Return the number of the last record, for use as `after` and `until`."""
        self._require_complete()
        return self.log.last_seq()

    def records(
        self,
        resource: str | None = None,
        name: str | None = None,
        after: int = 0,
        until: int | None = None,
    ) -> list[Record]:
        """Return the records after number `after` and up to number `until` (default: all), optionally only those of a
        resource and name."""
        if until is None:
            self._require_complete()
        return [
            record
            for record in self.log.records_after(self.namespace, after)
            if (self._is_complete_at(record) if until is None else record.seq <= until)
            and (resource is None or record.resource == resource)
            and (name is None or record.name == name)
        ]

    def view(self, at_seq: int | None = None) -> View:
        """Return the current state, or the state after record number `at_seq`, as a view that does not change later.
        Raises HarnessError if a stream lags."""
        past_view = View()
        for record in self.records(until=at_seq):
            past_view.apply(record)
        return past_view

    def wait(
        self,
        description: str,
        predicate: WaitCondition[R],
        timeout: float,
        *,
        max_seconds: float = 0,
        resources: Collection[str] | None = None,
        is_hopeless: Callable[[], object] | None = None,
    ) -> R:
        """Block until the predicate holds for the current state or the state after a later record, and return its
        result. The predicate is called after every record; with `resources`, only after records of these resources,
        which is cheaper.

        `is_hopeless` is called about once a second; a true result means that the wait can no longer succeed. While the
        cluster is active, the wait lasts up to `max_seconds`, because a slow machine does not mean that the
        implementation does not react.

        Raises WaitTimeout after `timeout` seconds or if the wait is hopeless, and HarnessError if the recorder has
        died.
        """
        start = checked_at = self.now()
        deadline: float | None = start + timeout
        last_seq: int | None = None
        self._catch_up()
        unmet = ""
        while True:
            result = self._evaluate(predicate)
            if isinstance(result, Unmet):
                unmet = result.reason
            elif result is not None and result is not False:
                return result
            while True:
                record = self._next(self._next_poll(deadline, is_hopeless), resources, last_seq)
                if record is None and deadline is None:
                    raise WaitTimeout(
                        description, self.now() - start, unmet, self._live_view.copy(), list(self._latest)
                    )
                if deadline is not None and (record is None or self.now() >= checked_at + POLL_SECONDS):
                    checked_at = self.now()
                    if checked_at >= deadline:
                        deadline = max(deadline, min(start + max_seconds, self._last_activity + IDLE_SECONDS))
                    if checked_at >= deadline or (is_hopeless and is_hopeless()):
                        self._require_complete()
                        # Records up to now still count, but later ones do not: otherwise the wait would never end if an
                        # implementation writes faster than the predicate is evaluated.
                        deadline, last_seq = None, self.log.last_seq()
                if record is not None:
                    break

    def quiet(
        self,
        seconds: float,
        timeout: float,
        *,
        resources: Collection[str] = ACTIVITY_RESOURCES,
        unless: Callable[[View], bool] = lambda view: False,
    ) -> int:
        """Block until no record of these resources has arrived for `seconds`, or `unless` holds after such a record,
        and return the mark of that moment.

        Raises WaitTimeout if that does not happen within `timeout` seconds.
        """
        self._catch_up()
        deadline = self.now() + timeout
        while (quiet_until := self.now() + seconds) <= deadline:
            if self._next(quiet_until, resources) is None:
                self._require_complete()
                if self._next(None, resources) is None:
                    return self._live_view.seq
            if unless(self._live_view):
                return self._live_view.seq
        raise WaitTimeout(f"{seconds:g} s without change", timeout, "", self._live_view.copy(), list(self._latest))

    def save(self, path: Path) -> None:
        """Write the history as JSON lines (storage.py)."""
        storage.save(path, self.namespace, self.now(), self.records(), self.origins)

    def frozen(self) -> History:
        """Return a snapshot of the history so far: no records are added to it, and its clock is stopped."""
        log = Log()
        log.restore(self.records(), self.now())
        copy = History(log, self.namespace)
        copy.unrest, copy.origins = list(self.unrest), self.origins
        return copy

    @classmethod
    def load(cls, path: Path) -> History:
        """Read a file that `save` wrote."""
        namespace, now, records = storage.load(path)
        log = Log()
        log.restore(records, now)
        loaded = cls(log, namespace)
        loaded.origins = storage.origins(path)
        return loaded

    def _evaluate(self, predicate: WaitCondition[R]) -> R | Unmet | None:
        self._is_evaluating = True
        try:
            return predicate(self._live_view)
        finally:
            self._is_evaluating = False

    def _next_poll(self, deadline: float | None, is_hopeless: object) -> float | None:
        """Return the time until which to wait for the next record."""
        return min(deadline, self.now() + POLL_SECONDS) if deadline is not None and is_hopeless else deadline

    def _require_complete(self) -> None:
        """Wait until the records of everything that has happened have arrived. Raises HarnessError if a stream lags."""
        if lagging := self.wait_until_complete().lagging:
            raise Withheld(f"the recorder has not received all changes of {lagging}", where=self.namespace)

    def _is_complete_at(self, record: Record) -> bool:
        """Return whether the changes of all resources before a record are known."""
        revision = self._last_check[2].revision
        return (
            self._is_evaluating
            or self._has_ended
            or revision is None
            or record.revision <= revision
            or record.resource in PASSIVE_RESOURCES
        )

    def _next(
        self, deadline: float | None, resources: Collection[str] | None, last: int | None = None
    ) -> Record | None:
        """Move the live view to the next record that counts. Return None at the deadline (in seconds of the log) or,
        without a deadline, if nothing more has arrived. Records after number `last` do not count."""
        while (last is None or self._position < last) and (record := self._pull(deadline)) is not None:
            if record.resource in resources if resources is not None else record.resource not in PASSIVE_RESOURCES:
                return record
        return None

    def _catch_up(self) -> None:
        """Apply everything that has arrived to the live view."""
        while self._pull() is not None:
            pass

    def _pull(self, deadline: float | None = None) -> Record | None:
        """Apply the next record to the live view. With a deadline, wait for a record until then."""
        if not self._inbox:
            wait_budget = 0.0 if deadline is None else max(0.0, deadline - self.now())
            self._inbox.extend(self.log.records_after(self.namespace, self._position, wait_budget))
        if not self._inbox or (deadline is not None and self._inbox[0].at > deadline):
            return None
        record = self._inbox.popleft()
        self._position = record.seq
        self._live_view.apply(record)
        if record.resource not in PASSIVE_RESOURCES:
            self._latest.append(record)
        if record.resource in ACTIVITY_RESOURCES:
            self._last_activity = record.at
        is_activity = (
            record.namespace
            and record.resource not in ALWAYS_CHANGING_RESOURCES
            and record.resource not in self.log.evidence
        )
        if is_activity and self._repetitions.is_new(circles.state_key(record)):
            self._last_change = max(self._last_change, record.at)
        return record
