"""The ordered log of everything that was seen, shared by the thread that records and the threads that wait.

The one invariant: `seq` rises by one with each record, and a record that `beyond` has returned never changes.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from heapq import merge
from typing import NamedTuple

from conformance.history.order import LAG
from conformance.history.record import DELETED, Record, Spilled, SpillFile, release

CLUSTER = ""
"""The namespace of cluster-scoped objects, which belong to every namespace's history."""


LARGE = 1 << 16
"""Bytes above which an object is kept in a file."""


class Present(NamedTuple):
    """How far a log is known to be whole: up to `revision` (None: all of it), but for the resources in `late`."""

    revision: int | None = None
    late: str = ""


class Log:
    """Records by namespace, in order of arrival. Any thread may append, read and wait."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._records: dict[str, list[Record]] = {CLUSTER: []}
        self._seq = 0
        self._started, self._started_wall = time.monotonic(), time.time()
        self._stopped: float | None = None
        """What `now` says once nothing more can happen."""
        self._failure: BaseException | None = None
        self._opened: set[str] | None = None
        """The namespaces whose records are kept; None for all."""
        self._spilled: dict[str, SpillFile] = {}
        self._clock: list[tuple[int, float]] = []
        """Revisions that the server was seen to have reached, with the moment."""

    def now(self) -> float:
        """Seconds since the log began."""
        return time.monotonic() - self._started if self._stopped is None else self._stopped

    def append(
        self,
        kind: str,
        resource: str,
        *,
        namespace: str,
        name: str,
        uid: str,
        version: str,
        raw: bytes,
        listed: bool = False,
        at: float | None = None,
    ) -> Record:
        """Adds what has just arrived and wakes who waits. `at` is for histories made by hand.

        A record that arrives late is dated by the revision clock: nothing is later for the lag of its stream."""
        with self._news:
            kept = self._opened is None or namespace == CLUSTER or namespace in self._opened
            self._seq += 1
            moment = self._moment(version, self.now() if at is None else at)
            record = Record(
                seq=self._seq,
                at=moment,
                wall=self._started_wall + moment,
                kind=kind,
                resource=resource,
                namespace=namespace,
                name=name,
                uid=uid,
                version=version,
                raw=self._spill(namespace, raw) if kept and len(raw) > LARGE else raw,
                listed=listed,
            )
            if kept:
                self._records.setdefault(namespace, []).append(record)
                self._news.notify_all()
            return record

    def restore(self, records: list[Record], now: float) -> None:
        """Fills an empty log with the records of a saved one; `now()` is then the moment of saving."""
        with self._news:
            for record in records:
                self._records.setdefault(record.namespace, []).append(record)
                self._seq = record.seq
            self._stopped = now

    def fail(self, error: BaseException) -> None:
        """Says that nothing more will come; who waits is told by `error`."""
        with self._news:
            self._failure = error
            self._news.notify_all()

    def beyond(self, namespace: str, seq: int, timeout: float = 0.0) -> list[Record]:
        """The records of a namespace, and of cluster-scoped objects, after number `seq`. Where there is none yet,
        blocks until there is one, for at most `timeout` seconds; an empty list then.

        Raises what the recorder died of."""
        deadline = time.monotonic() + timeout
        with self._news:
            while True:
                found = [self._after(space, seq) for space in {CLUSTER, namespace}]
                if any(found):
                    return list(merge(*found, key=lambda record: record.seq))
                if self._failure is not None:
                    raise self._failure
                left = deadline - time.monotonic()
                if left <= 0:
                    return []
                self._news.wait(left)

    def reached(self, revision: int) -> None:
        """Says that the server is at this revision now, whatever has arrived of it."""
        with self._news:
            self._clock.append((revision, self.now()))

    def complete(self, namespace: str, timeout: float) -> Present:
        """Returns when the log has all that has happened in a namespace until now, or after `timeout` seconds. A log
        that nothing feeds has all."""
        return Present()

    def last_seq(self) -> int:
        with self._news:
            return self._seq

    def open(self, namespace: str) -> None:
        """Has the records of this namespace kept. From the first call on, those of namespaces that were not opened are
        dropped as they come."""
        with self._news:
            self._opened = (self._opened or set()) | {namespace}

    def forget(self, namespace: str) -> None:
        """Drops the records of a namespace: its test is over and its history saved where it was wanted. Once none is
        open, of each cluster-scoped object only its last state is kept."""
        with self._news:
            self._records.pop(namespace, None)
            if self._spilled.pop(namespace, None) is not None:
                release()
            if self._opened is None:
                return
            self._opened.discard(namespace)
            if not self._opened:
                last = {(record.resource, record.name): record for record in self._records[CLUSTER]}
                left = [record for record in last.values() if record.kind != DELETED]
                self._records[CLUSTER] = sorted(left, key=lambda record: record.seq)

    def last(self, resource: str, namespace: str, name: str) -> Record | None:
        """The last record of an object, if it is kept."""
        with self._news:
            records = reversed(self._records.get(namespace, []))
            return next((r for r in records if (r.resource, r.name) == (resource, name)), None)

    def _spill(self, namespace: str, raw: bytes) -> Spilled:
        """Write a large object to a file, so that an implementation with many writes does not fill the memory."""
        file = self._spilled.get(namespace)
        if file is None:
            file = self._spilled[namespace] = SpillFile()
        return file.append(raw)

    def _moment(self, version: str, arrival: float) -> float:
        """When a change was made at the latest. A revision that was passed longer than LAG ago is no late record: it
        may be one of another etcd, which order.py has to see."""
        revision = int(version) if version.isdigit() else 0
        place = bisect_left(self._clock, revision, key=lambda tick: tick[0])
        passed = self._clock[place][1] if place < len(self._clock) else arrival
        return passed if arrival - LAG < passed < arrival else arrival

    def _after(self, namespace: str, seq: int) -> list[Record]:
        records = self._records.get(namespace, [])
        return records[bisect_right(records, seq, key=lambda record: record.seq) :]
