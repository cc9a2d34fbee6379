"""Waiting for and asking about what happened in one namespace. Nothing polls: waits sleep on the log's condition."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeVar

from conformance.history import storage
from conformance.history.log import Log
from conformance.history.record import Record
from conformance.history.summary import describe, overview
from conformance.history.verdict import Verdict
from conformance.history.view import View

R = TypeVar("R")

UNASKED = frozenset({"events"})
"""Resources whose records change no answer: events bind nobody, and there are many of them."""


MOVING = ("pods", "podgangs", "podcliques", "podcliquescalinggroups", "podcliquesets")
"""Resources whose records show that the implementation, or what it has begun, is at work."""

LULL = 5.0
"""Seconds without a record after which nothing is under way."""

LOOK_EVERY = 1.0
"""Seconds without a record after which a wait asks whether there is hope."""


class Miss:
    """What a predicate returns instead of a result when it is not yet content: why, in words for people."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.reason


Predicate = Callable[[View], R | Miss | None]
"""Asked with the state after each record. None, False or a Miss mean: not so. It must not keep the view (view.py)."""


class NotSeen(Exception):
    """What was waited for did not come. `what` was wanted within `timeout` seconds; `miss` is the reason that the
    predicate gave last (empty when it gave none), `view` the last state, `latest` what changed last."""

    def __init__(self, what: str, timeout: float, miss: str, view: View, latest: list[Record]) -> None:
        self.what, self.timeout, self.miss, self.view, self.latest = what, timeout, miss, view, latest
        super().__init__(what)

    def __str__(self) -> str:
        lines = [f"not seen within {self.timeout:.0f} s: {self.what}"]
        if self.miss:
            lines.append(f"nearest: {self.miss}")
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
        self.unrest: list[tuple[float, float]] = []
        """Spans in which something happened that no record tells of, e.g. another operator took over."""

    def now(self) -> float:
        """Seconds since the recorder started."""
        return self.log.now()

    def mark(self) -> int:
        """The number of the last record that has arrived: the present, to be used as `since` or `until`."""
        return self.log.last_seq()

    def records(
        self,
        resource: str | None = None,
        name: str | None = None,
        since: int = 0,
        until: int | None = None,
    ) -> list[Record]:
        """The records after number `since`, up to and with number `until`, of a resource and a name where given."""
        return [
            record
            for record in self.log.beyond(self.namespace, since)
            if (until is None or record.seq <= until)
            and (resource is None or record.resource == resource)
            and (name is None or record.name == name)
        ]

    def view(self, at_seq: int | None = None) -> View:
        """The state now, or after record number `at_seq`; it stays as it is."""
        if at_seq is None:
            self._catch_up()
            return self._live.copy()
        past = View()
        for record in self.records(until=at_seq):
            past.apply(record)
        return past

    def steps(self, since: int = 0, until: int | None = None) -> Iterator[tuple[Record, View]]:
        """Every record after `since` with the state after it; the view moves on."""
        view = View()
        for record in self.records(until=until):
            view.apply(record)
            if record.seq > since:
                yield record, view

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

        Raises NotSeen after `timeout` seconds or where there is no hope, HarnessError when the recorder has died.
        """
        begin = self.now()
        deadline = begin + timeout
        self._catch_up()
        miss = ""
        answer = predicate(self._live)
        while True:
            if isinstance(answer, Miss):
                miss = answer.reason
            elif answer is not None and answer is not False:
                return answer
            while self._next(min(deadline, self.now() + LOOK_EVERY) if hopeless else deadline, resources) is None:
                if self.now() >= deadline:
                    deadline = max(deadline, min(begin + longest, self._moved + LULL))
                if self.now() >= deadline or (hopeless and hopeless()):
                    raise NotSeen(what, self.now() - begin, miss, self._live.copy(), list(self._latest))
            answer = predicate(self._live)

    def first(self, predicate: Predicate[R], since: int = 0, until: int | None = None) -> tuple[Record, R] | None:
        """The first record in what has been recorded after whose arrival the predicate was content, and its answer."""
        for record, view in self.steps(since, until):
            answer = predicate(view)
            if answer is not None and answer is not False and not isinstance(answer, Miss):
                return record, answer
        return None

    def never(
        self, what: str, predicate: Predicate[R], since: int = 0, until: int | None = None, *, id: str = ""
    ) -> Verdict:
        """Judges that the predicate was content after no record between two marks. True, false with the first record
        that shows the contrary, or unknown where nothing was recorded between them."""
        found = self.first(predicate, since, until)
        if found is not None:
            return Verdict(id, what, False, f"{found[1]}" if found[1] is not True else "it was so", (found[0],))
        if not self.records(since=since, until=until):
            return Verdict(id, what, None, "nothing was recorded between the marks")
        return Verdict(id, what, True)

    def quiet(self, seconds: float, timeout: float, *, resources: Collection[str] = MOVING) -> int:
        """Blocks until no record of these resources has come for `seconds`; gives the mark of that moment.

        Raises NotSeen after `timeout` seconds of unrest.
        """
        self._catch_up()
        deadline = self.now() + timeout
        while (calm := self.now() + seconds) <= deadline:
            if self._next(calm, resources) is None:
                return self._live.seq
        raise NotSeen(f"{seconds:g} s without change", timeout, "", self._live.copy(), list(self._latest))

    def save(self, path: Path) -> None:
        """Writes the history as JSON lines (storage.py)."""
        storage.save(path, self.namespace, self.now(), self.records())

    @classmethod
    def load(cls, path: Path) -> History:
        """Reads what `save` wrote."""
        namespace, now, records = storage.load(path)
        log = Log()
        log.restore(records, now)
        return cls(log, namespace)

    def _next(self, deadline: float, resources: Collection[str] | None) -> Record | None:
        """Moves the live view on until a record that counts; None at the deadline (in seconds of the log)."""
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
            patience = 0.0 if deadline is None else max(0.0, deadline - self.now())
            self._inbox.extend(self.log.beyond(self.namespace, self._taken, patience))
        if not self._inbox or (deadline is not None and self._inbox[0].at > deadline):
            return None
        record = self._inbox.popleft()
        self._taken = record.seq
        self._live.apply(record)
        if record.resource not in UNASKED:
            self._latest.append(record)
        if record.resource in MOVING:
            self._moved = record.at
        return record
