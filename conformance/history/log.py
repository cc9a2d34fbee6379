"""The ordered log of all records, shared by the recording thread and the waiting threads.

Invariants: `seq` increases by one with each record, and a record that `records_after` has returned never changes.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from heapq import merge
from typing import NamedTuple

from conformance.grove.fields import decimal
from conformance.history.order import MAX_LAG_SECONDS
from conformance.history.record import DELETED, Record, SpilledObject, SpillFile, release
from kube.objects import Key

CLUSTER = ""
"""The namespace of cluster-scoped objects, which belong to every namespace's history."""


MIN_DROPPED = 10_000
"""The number of records of a namespace below which condensing is not worthwhile."""
LARGE_OBJECT_BYTES = 1 << 16
"""Size in bytes above which an object is kept in a file."""
MAX_MEMORY_BYTES = 32 << 20
"""Maximum number of bytes of raw objects of all namespaces that are kept in memory; beyond it, more objects are kept in
files. Decoded objects are also kept in memory, and can be several times as large."""


class Completeness(NamedTuple):
    """The revision up to which a log is complete (None: entirely), except for the resources that `lagging` names."""

    revision: int | None = None
    lagging: str = ""


class Log:
    """Records by namespace, in order of arrival. Any thread may append, read and wait."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._records: dict[str, list[Record]] = {CLUSTER: []}
        self._seq = 0
        self._started_at, self._started_wall = time.monotonic(), time.time()
        self._stopped_at: float | None = None
        """The value of `now` once the log has stopped."""
        self._failure: BaseException | None = None
        self._open_namespaces: set[str] | None = None
        """The namespaces whose records are kept; None for all."""
        self.received_bytes = 0
        """Total bytes of all objects that have arrived, including those that were not kept."""
        self._condensed: dict[str, int] = {}
        """Namespace → the number of records that `condense` has left."""
        self._spill_files: dict[str, SpillFile] = {}
        self._memory_bytes: dict[str, int] = {}
        """Namespace → bytes of its objects that are kept in memory."""
        self.evidence: frozenset[str] = frozenset()
        """Resources that are recorded only as evidence: their changes do not count as activity."""
        self._clock: list[tuple[int, float]] = []
        """Revisions that the server is known to have reached, each with the time at which that was known."""

    def now(self) -> float:
        """Return the seconds since the log was created, or the time at which it stopped."""
        return time.monotonic() - self._started_at if self._stopped_at is None else self._stopped_at

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
        """Add a record that has just arrived and wake waiting threads. `at` is only for hand-made histories.

        A record that arrives late is dated by the revision clock, so that a lagging stream does not make a change
        appear later than it was.
        """
        with self._condition:
            is_kept = self._open_namespaces is None or namespace == CLUSTER or namespace in self._open_namespaces
            self._seq += 1
            self.received_bytes += len(raw)
            is_spilled = is_kept and (
                len(raw) > LARGE_OBJECT_BYTES or sum(self._memory_bytes.values()) + len(raw) > MAX_MEMORY_BYTES
            )
            moment = self._change_time(version, self.now() if at is None else at)
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
                raw=self._spill(namespace, raw) if is_spilled else raw,
                listed=listed,
            )
            if is_kept:
                self._records.setdefault(namespace, []).append(record)
                self._memory_bytes[namespace] = self._memory_bytes.get(namespace, 0) + record.in_memory
                self._condition.notify_all()
            return record

    def restore(self, records: list[Record], now: float) -> None:
        """Fill an empty log with the records of a saved log. From then on, `now()` returns the time of saving."""
        with self._condition:
            for record in records:
                self._records.setdefault(record.namespace, []).append(record)
                self._seq = record.seq
            self._stopped_at = now

    def fail(self, error: BaseException) -> None:
        """Stop the log because of an error; waiting threads raise that error."""
        with self._condition:
            self._failure = error
            self._condition.notify_all()

    def records_after(self, namespace: str, seq: int, timeout: float = 0.0) -> list[Record]:
        """Return the records of a namespace, and of cluster-scoped objects, after number `seq`. If there is none yet,
        block until one arrives; return an empty list after `timeout` seconds.

        Raises the error that stopped the recorder.
        """
        deadline = time.monotonic() + timeout
        with self._condition:
            while True:
                streams = [self._after(space, seq) for space in {CLUSTER, namespace}]
                if any(streams):
                    return list(merge(*streams, key=lambda record: record.seq))
                if self._failure is not None:
                    raise self._failure
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return []
                self._condition.wait(remaining)

    def all_records(self, seq: int = 0) -> list[Record]:
        """Return the records of all namespaces after number `seq`. Raises the error that stopped the recorder."""
        with self._condition:
            if self._failure is not None:
                raise self._failure
            streams = [self._after(space, seq) for space in self._records]
            return list(merge(*streams, key=lambda record: record.seq))

    def record_revision(self, revision: int) -> None:
        """Record that the server has now reached this revision, whether or not its event has arrived."""
        with self._condition:
            self._clock.append((revision, self.now()))

    def complete(self, namespace: str, timeout: float) -> Completeness:
        """Block until the log has everything that has happened in a namespace so far, or until `timeout` seconds, or a
        multiple of them, have passed, and return how complete the log is. A log without a recorder is always
        complete."""
        return Completeness()

    def last_seq(self) -> int:
        """Return the number of the last record."""
        with self._condition:
            return self._seq

    def open(self, namespace: str) -> None:
        """Keep the records of this namespace. Once this has been called, records of namespaces that were not opened are
        dropped."""
        with self._condition:
            self._open_namespaces = (self._open_namespaces or set()) | {namespace}

    def condense(self, namespace: str, seq: int) -> None:
        """Drop the records of a namespace up to number `seq`, except the last state of each existing object: for a
        reader that needs each record only once. Nothing is dropped until the number of records has about doubled, so
        that the total cost is linear in the number of records."""
        with self._condition:
            records = self._records.get(namespace, [])
            if len(records) < 2 * self._condensed.get(namespace, 0) + MIN_DROPPED:
                return
            read_count = bisect_right(records, seq, key=lambda record: record.seq)
            kept_records = [*_last_states(records[:read_count]), *records[read_count:]]
            self._condensed[namespace] = len(kept_records)
            self._replace_records(namespace, kept_records)
            if self._spill_files.pop(namespace, None) is not None:
                release()  # the file is closed once no remaining record refers to it

    def forget(self, namespace: str) -> None:
        """Drop the records of a namespace whose test is over. Once no namespace is open, only the last state of each
        cluster-scoped object is kept."""
        with self._condition:
            self._records.pop(namespace, None)
            self._condensed.pop(namespace, None)
            self._memory_bytes.pop(namespace, None)
            if self._spill_files.pop(namespace, None) is not None:
                release()
            if self._open_namespaces is None:
                return
            self._open_namespaces.discard(namespace)
            if not self._open_namespaces:
                self._replace_records(CLUSTER, _last_states(self._records[CLUSTER]))

    def last(self, resource: str, namespace: str, name: str) -> Record | None:
        """Return the last record of an object, if it is kept."""
        with self._condition:
            records = reversed(self._records.get(namespace, []))
            return next((r for r in records if (r.resource, r.name) == (resource, name)), None)

    def last_of(self, resource: str, keys: Collection[Key]) -> dict[Key, Record]:
        """Return the last kept record of each of these objects (namespace, name), in one pass over the log."""
        latest: dict[Key, Record] = {}
        with self._condition:
            for space in {namespace for namespace, _ in keys}:
                names = {name for namespace, name in keys if namespace == space}
                for record in reversed(self._records.get(space, [])):
                    if record.resource == resource and record.name in names:
                        names.remove(record.name)
                        latest[space, record.name] = record
                        if not names:
                            break
        return latest

    def _replace_records(self, namespace: str, records: list[Record]) -> None:
        """Replace the records of a namespace."""
        self._records[namespace] = records
        self._memory_bytes[namespace] = sum(record.in_memory for record in records)

    def _spill(self, namespace: str, raw: bytes) -> SpilledObject:
        """Write a large object to a file, so that an implementation that writes a lot does not fill the memory."""
        file = self._spill_files.get(namespace)
        if file is None:
            file = self._spill_files[namespace] = SpillFile()
        return file.append(raw)

    def _change_time(self, version: str, arrival: float) -> float:
        """Return the latest time at which a change can have been made. If the server reached the revision more than
        MAX_LAG_SECONDS seconds before the arrival, the record is not late but may belong to another etcd, which
        order.py must notice; then return `arrival`."""
        revision = decimal(version) or 0
        index = bisect_left(self._clock, revision, key=lambda tick: tick[0])
        reached_at = self._clock[index][1] if index < len(self._clock) else arrival
        return reached_at if arrival - MAX_LAG_SECONDS < reached_at < arrival else arrival

    def _after(self, namespace: str, seq: int) -> list[Record]:
        records = self._records.get(namespace, [])
        return records[bisect_right(records, seq, key=lambda record: record.seq) :]


def _last_states(records: Iterable[Record]) -> list[Record]:
    """Return the last record of each object that still exists, in order. All records must be of one namespace."""
    latest = {(record.resource, record.name): record for record in records}
    return sorted((record for record in latest.values() if record.kind != DELETED), key=lambda record: record.seq)
