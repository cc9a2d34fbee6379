"""The ledger of a run: all its events, collected in the process that controls the run.

The workers send their events through pipes (`run/workers.py`), and the report is made from the events that arrive. The
file is only a copy for people, because any program of this user, including the judged implementation, could write to
it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from conformance import bounded, regular
from conformance.errors import UsageError
from conformance.suite.outcomes.ledger import AnyEvent, HarnessFault, encoded

FILE = "run.jsonl"
_CHUNK_BYTES = 1 << 20
_decoder = msgspec.json.Decoder(AnyEvent)


class RunLedger:
    """Events in order of arrival. Any thread may write and read. Raises OSError if the file cannot be created."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE
        self._file = regular.open_file(self._path, "ab")
        _try_lock(self._file.fileno())
        self._written, self._digest = 0, hashlib.sha256()
        self._lock = threading.Lock()
        self._events: list[AnyEvent] = []
        self._unwritten = ""
        """The reason why the file is incomplete; empty if it is complete."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, event: AnyEvent) -> None:
        """Add an event of this process."""
        self.append_encoded(encoded(event))

    def append_encoded(self, line: bytes) -> AnyEvent:
        """Add an event in the form in which a worker has sent it, and return it."""
        try:
            event: AnyEvent = _decoder.decode(line)
        except bounded.DECODE_ERRORS as error:
            event = HarnessFault(worker="run", what=f"a worker sent something other than an event: {error}")
            line = encoded(event)
        with self._lock:
            self._events.append(event)
            self._append(line + b"\n")
        return event

    def events_after(self, number: int) -> list[AnyEvent]:
        """Return the events after the first `number` events."""
        with self._lock:
            return self._events[number:]

    def events(self) -> list[AnyEvent]:
        """Return all events, sorted by time."""
        return sorted(self.events_after(0), key=lambda event: event.wall)

    def close(self) -> None:
        """Close the file. Add a harness fault if its content differs from what was written to it."""
        with self._file:
            for fault in (self._unwritten, "" if self._unwritten else self._tampering()):
                if fault:
                    self._unwritten = ""
                    self.write(HarnessFault(worker="run", what=fault, log=str(self._path)))

    def _append(self, line: bytes) -> None:
        if self._unwritten or self._file.closed:
            return
        try:
            written_bytes = self._file.write(line)
        except OSError as error:
            self._unwritten = f"the ledger {self._path} cannot be written: {error.strerror}: make room"
            return
        self._written += written_bytes
        self._digest.update(line[:written_bytes])
        if written_bytes < len(line):
            self._unwritten = f"the ledger {self._path} cannot be written: the disk is full: make room"

    def _tampering(self) -> str:
        fault = f"another program has changed the ledger {self._path}; judged is what the workers sent"
        try:
            file, digest = regular.OpenFile(self._path), hashlib.sha256()
            if file.size != self._written or not os.path.sameopenfile(file.descriptor, self._file.fileno()):
                return fault
            for offset in range(0, self._written, _CHUNK_BYTES):
                digest.update(file.at(offset, _CHUNK_BYTES))
        except OSError:
            return fault
        return "" if digest.digest() == self._digest.digest() else fault


def _try_lock(descriptor: int) -> bool:
    """Lock a ledger until its file is closed or its process ends. Return whether no other process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system does not support locks
        return True
    return True


def in_use(folder: Path) -> bool:
    """Return whether the run that writes a ledger is still in progress. Raises OSError if the ledger does not exist."""
    file = regular.OpenFile(folder / FILE)
    return not _try_lock(file.descriptor)


def save(folder: Path, events: Iterable[AnyEvent]) -> None:
    """Write events, which already have their times, as a ledger. Raises OSError if the file cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    regular.write(folder / FILE, b"".join(msgspec.json.encode(event) + b"\n" for event in events))


def read(folder: Path) -> Iterator[AnyEvent]:
    """Yield all complete events of an earlier run, sorted by time. A partial line at the end of a file is skipped,
    because the run may have been killed. Raises UsageError if a file cannot be read, is too long, or contains a line
    that is not an event."""
    events: list[AnyEvent] = []
    for path in sorted(folder.glob("*.jsonl")):
        try:
            file = regular.OpenFile(path)
            if file.size > bounded.MAX_LOG_BYTES:
                problem = f"is longer than {bounded.MAX_LOG_BYTES >> 20} MiB"
                raise UsageError(problem, where=str(path), hint="give the folder of another run")
            lines = file.at(0, file.size).splitlines(keepends=True)
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error
        for number, line in enumerate(lines, 1):
            if line.endswith(b"\n"):
                location, hint = f"{path}:{number}", "give the folder of another run"
                events.append(bounded.decode_line(_decoder.decode, line, location, problem="is no event", hint=hint))
    return iter(sorted(events, key=lambda event: event.wall))
