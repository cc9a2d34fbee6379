"""Waiting for and asking about what happened in one namespace. Nothing polls: waits sleep on the log's condition."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from conformance.errors import HarnessError
from conformance.history import storage
from conformance.history.log import Log, Present
from conformance.history.record import Record
from conformance.history.summary import describe, overview
from conformance.history.view import View

R = TypeVar("R")

UNASKED = frozenset({"events"})
"""Resources whose records change no answer: events bind nobody, and there are many of them."""


RESTLESS = frozenset({"events", "leases"})
"""Resources that change while nothing is under way."""

MOVING = ("pods", "podgangs", "podcliques", "podcliquescalinggroups", "podcliquesets")
"""Resources whose records show that the implementation, or what it has begun, is at work."""

LULL = 5.0
"""Seconds without a record after which nothing is under way."""

COMPLETE = 30.0
"""Seconds within which each stream has passed what has happened: more is no lag of a busy machine."""

FRESH = 1.0
"""Seconds for which the present needs no second look where nothing has arrived: from a late stream nothing does."""

LOOK_EVERY = 1.0
"""Seconds without a record after which a wait asks whether there is hope."""


class Unmet:
    """What a predicate returns instead of a result when it is not yet content: why, in words for people."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.reason


Predicate = Callable[[View], R | Unmet | None]
"""Asked with the state after each record. None, False or an Unmet mean: not so. It must not keep the view (view.py)."""


class WaitTimeout(Exception):
    """What was waited for did not come. `what` was wanted within `timeout` seconds; `miss` is the reason that the
    predicate gave last (empty when it gave none), `view` the last state, `latest` what changed last."""

    def __init__(self, what: str, timeout: float, unmet: str, view: View, latest: list[Record]) -> None:
        self.what, self.timeout, self.unmet, self.view, self.latest = what, timeout, unmet, view, latest
        super().__init__(what)

    def __str__(self) -> str:
        lines = [f"not seen within {self.timeout:.0f} s: {self.what}"]
        if self.unmet:
            lines.append(f"nearest: {self.unmet}")
        lines += ["last state:", *(f"  {line}" for line in overview(self.view))]
        lines += ["changed last:", *(f"  {describe(record)}" for record in self.latest)] if self.latest else []
        return "\n".join(lines)


class History:
    """The history of one namespace, with the cluster-scoped objects beside it. For one thread at a time.

    The log may be a running Recorder, a log filled by hand, or one loaded from a file.
    """

    def __init__(self, log: Log, namespace: str) -> None:
        self.log, self.namespace = log, namespace
        self._live = View()
        self._inbox: deque[Record] = deque()
        self._taken = 0
        self._latest: deque[Record] = deque(maxlen=5)
        self._moved = float("-inf")
        self._stirred = log.now()
        self._asking = False
        """Whether a predicate is being asked, which goes by what has arrived."""
        self._over = False
        self._whole = -1, log.now(), Present()
        """The number of the last record when the log was completed last, when that was, and how far it was then."""
        self.unrest: list[tuple[float, float]] = []
        """Spans in which something happened that no record tells of, e.g. another operator took over."""

    @property
    def arrived(self) -> View:
        """The state as far as it has arrived, which moves on: for a look in passing."""
        return self._live

    @property
    def still(self) -> float:
        """Seconds since an object of the namespace last changed, or the test did something (`stir`)."""
        return self.now() - self._stirred

    def stir(self) -> None:
        """Says that the test has done something that there may be no record of, or none in the namespace."""
        self._stirred = self.now()

    def now(self) -> float:
        """Seconds since the recorder started."""
        return self.log.now()

    def end(self) -> None:
        """What has arrived by now is all that there will be: nobody waits for more."""
        self._over = True

    def present(self) -> Present:
        """Waits until the streams of all resources have passed the present, so that what is compared belongs together;
        where `late` says that some have not, nothing can be said of the present."""
        last = self.log.last_seq()
        known, at, _ = self._whole
        if not self._asking and not self._over and (known != last or self.now() - at > FRESH):
            present = self.log.complete(self.namespace, COMPLETE)
            self._whole = last, self.now(), present
        return self._whole[2]

    def mark(self) -> int:
        """The present, as the number of the last record before it: to be used as `since` or `until`."""
        self._arrive()
        return self.log.last_seq()

    def records(
        self,
        resource: str | None = None,
        name: str | None = None,
        since: int = 0,
        until: int | None = None,
    ) -> list[Record]:
        """The records after number `since`, up to and with number `until` (else up to the present), of a resource and a
        name where given."""
        if until is None:
            self._arrive()
        return [
            record
            for record in self.log.beyond(self.namespace, since)
            if (self._is_whole(record) if until is None else record.seq <= until)
            and (resource is None or record.resource == resource)
            and (name is None or record.name == name)
        ]

    def view(self, at_seq: int | None = None) -> View:
        """The state at present, or after record number `at_seq`; it stays as it is. Raises HarnessError where a stream
        has not come to the present."""
        past = View()
        for record in self.records(until=at_seq):
            past.apply(record)
        return past

    def wait(
        self,
        what: str,
        predicate: Predicate[R],
        timeout: float,
        *,
        longest: float = 0,
        resources: Collection[str] | None = None,
        hopeless: Callable[[], object] | None = None,
    ) -> R:
        """Blocks until the predicate is content with the present state or with the state after a later record; gives
        what it returned. It is asked after every record (of `resources` only, where given: cheaper).

        `hopeless` is asked about once a second; what it says true to can't come any more. While something is under
        way the wait goes on for up to `longest` seconds: a busy machine is no deaf implementation.

        Raises WaitTimeout after `timeout` seconds or where there is no hope, HarnessError when the recorder has died.
        """
        begin = self.now()
        deadline: float | None = begin + timeout
        self._catch_up()
        unmet = ""
        while True:
            answer = self._ask(predicate)
            if isinstance(answer, Unmet):
                unmet = answer.reason
            elif answer is not None and answer is not False:
                return answer
            while self._next(self._look(deadline, hopeless), resources) is None:
                if deadline is None:
                    raise WaitTimeout(what, self.now() - begin, unmet, self._live.copy(), list(self._latest))
                if self.now() >= deadline:
                    deadline = max(deadline, min(begin + longest, self._moved + LULL))
                if self.now() >= deadline or (hopeless and hopeless()):
                    self._arrive()
                    deadline = None  # what has happened by now still counts, and nothing else

    def quiet(self, seconds: float, timeout: float, *, resources: Collection[str] = MOVING) -> int:
        """Blocks until no record of these resources has come for `seconds`; gives the mark of that moment.

        Raises WaitTimeout after `timeout` seconds of unrest.
        """
        self._catch_up()
        deadline = self.now() + timeout
        while (calm := self.now() + seconds) <= deadline:
            if self._next(calm, resources) is None:
                self._arrive()
                if self._next(None, resources) is None:
                    return self._live.seq
        raise WaitTimeout(f"{seconds:g} s without change", timeout, "", self._live.copy(), list(self._latest))

    def save(self, path: Path) -> None:
        """Writes the history as JSON lines (storage.py)."""
        storage.save(path, self.namespace, self.now(), self.records())

    def frozen(self) -> History:
        """What has happened by now, as a history of its own: nothing is added to it, and its clock stands."""
        log = Log()
        log.restore(self.records(), self.now())
        copy = History(log, self.namespace)
        copy.unrest = list(self.unrest)
        return copy

    @classmethod
    def load(cls, path: Path) -> History:
        """Reads what `save` wrote."""
        namespace, now, records = storage.load(path)
        log = Log()
        log.restore(records, now)
        return cls(log, namespace)

    def _ask(self, predicate: Predicate[R]) -> R | Unmet | None:
        self._asking = True
        try:
            return predicate(self._live)
        finally:
            self._asking = False

    def _look(self, deadline: float | None, hopeless: object) -> float | None:
        """Until when to wait for the next record."""
        return min(deadline, self.now() + LOOK_EVERY) if deadline is not None and hopeless else deadline

    def _arrive(self) -> None:
        """Has everything arrive that has happened. Raises HarnessError where a stream stays behind."""
        if late := self.present().late:
            raise HarnessError(f"the recorder has not been told of all changes of {late}", where=self.namespace)

    def _is_whole(self, record: Record) -> bool:
        """Whether all that happened before a record is known, whatever the resource."""
        revision = self._whole[2].revision
        return (
            self._asking or self._over or revision is None or record.revision <= revision or record.resource in UNASKED
        )

    def _next(self, deadline: float | None, resources: Collection[str] | None) -> Record | None:
        """Moves the live view on until a record that counts; None at the deadline (in seconds of the log), or, without
        one, where nothing more has arrived."""
        while (record := self._pull(deadline)) is not None:
            if record.resource in resources if resources is not None else record.resource not in UNASKED:
                return record
        return None

    def _catch_up(self) -> None:
        """Moves the live view on by all that has arrived."""
        while self._pull() is not None:
            pass

    def _pull(self, deadline: float | None = None) -> Record | None:
        """Moves the live view on by one record. With a deadline waits for one that arrives before it."""
        if not self._inbox:
            wait_budget = 0.0 if deadline is None else max(0.0, deadline - self.now())
            self._inbox.extend(self.log.beyond(self.namespace, self._taken, wait_budget))
        if not self._inbox or (deadline is not None and self._inbox[0].at > deadline):
            return None
        record = self._inbox.popleft()
        self._taken = record.seq
        self._live.apply(record)
        if record.resource not in UNASKED:
            self._latest.append(record)
        if record.resource in MOVING:
            self._moved = record.at
        if record.namespace and record.resource not in RESTLESS:
            self._stirred = max(self._stirred, record.at)
        return record
