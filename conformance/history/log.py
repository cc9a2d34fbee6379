"""The ordered log of everything that was seen, shared by the thread that records and the threads that wait.

The one invariant: `seq` rises by one with each record, and a record that `beyond` has returned never changes.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from heapq import merge

from conformance.history.record import Record

CLUSTER = ""
"""The namespace of cluster-scoped objects, which belong to every namespace's history."""


class Log:
    """Records by namespace, in order of arrival. Any thread may append, read and wait."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._records: dict[str, list[Record]] = {CLUSTER: []}
        self._seq = 0
        self._started, self._started_wall = time.monotonic(), time.time()
        self._failure: BaseException | None = None

    def now(self) -> float:
        """Seconds since the log began."""
        return time.monotonic() - self._started

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
        """Adds what has just happened and wakes who waits. `at` is for histories made by hand."""
        with self._news:
            self._seq += 1
            moment = self.now() if at is None else at
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
                raw=raw,
                listed=listed,
            )
            self._records.setdefault(namespace, []).append(record)
            self._news.notify_all()
            return record

    def restore(self, records: list[Record], now: float) -> None:
        """Fills an empty log with the records of a saved one; `now()` is then the moment of saving."""
        with self._news:
            for record in records:
                self._records.setdefault(record.namespace, []).append(record)
                self._seq = record.seq
            self._started = time.monotonic() - now

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

    def last_seq(self) -> int:
        with self._news:
            return self._seq

    def forget(self, namespace: str) -> None:
        """Drops the records of a namespace: its test is over and its history saved where it was wanted."""
        with self._news:
            self._records.pop(namespace, None)

    def _after(self, namespace: str, seq: int) -> list[Record]:
        records = self._records.get(namespace, [])
        return records[bisect_right(records, seq, key=lambda record: record.seq) :]
