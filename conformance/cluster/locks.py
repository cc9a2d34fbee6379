"""Locks between processes: a process that waits for longer than a second reports the holder of the lock, and no wait is
unlimited.

Only a process that is suspended or hangs holds a lock for long, and it cannot report that itself. Therefore its pid is
in the lock file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from conformance import regular
from conformance.cluster.progress import ProgressReporter
from conformance.errors import UsageError

FIRST_MESSAGE_SECONDS = 1.0
"""Seconds of waiting before the first message."""
REMINDER_SECONDS = 30.0
"""Seconds between two messages."""
SHORT_WAIT_SECONDS = 60.0
"""Seconds after which waiting for a short lock is given up. `prune`, which holds a lock the longest, takes ten."""
BUILD_WAIT_SECONDS = 3600.0
"""Seconds after which waiting for a build is given up. A build without caches takes ten minutes on two cores."""


@contextmanager
def hold(path: Path, report: ProgressReporter, *, timeout: float | None = None) -> Iterator[None]:
    """Hold the lock file `path`. Raises UsageError if another process holds it for more than `timeout` seconds (by
    default SHORT_WAIT_SECONDS)."""
    timeout = timeout or SHORT_WAIT_SECONDS
    lock, start, patience = FileLock(path, mode=0o600), time.monotonic(), min(FIRST_MESSAGE_SECONDS, timeout)
    while True:
        try:
            lock.acquire(timeout=patience)
            break
        except Timeout:
            waited = time.monotonic() - start
        if waited > timeout:
            raise UsageError(
                f"{_holder(path)} holds this lock for more than {timeout:g} s",
                where=str(path),
                hint="let it go on (kill -CONT) or end it",
            )
        reason = ", after it has downloaded or built a program: some minutes" if timeout == BUILD_WAIT_SECONDS else ""
        report("lock", f"waiting for {_holder(path)} to release {path}{reason}")
        patience = min(REMINDER_SECONDS, timeout)
    try:
        with suppress(OSError):  # with a full disk, commands that free space still need the lock
            path.write_text(str(os.getpid()))
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Return whether another process holds the lock file `path`, which need not exist."""
    if not path.exists():
        return False
    try:
        with FileLock(path, mode=0o600).acquire(blocking=False):
            return False
    except Timeout:
        return True


def _holder(path: Path) -> str:
    """Return the holder of a lock in readable form."""
    try:
        process = psutil.Process(int(regular.OpenFile(path).at(0, 64)))
        suffix = ", which is stopped" if process.status() == psutil.STATUS_STOPPED else ""
        return f"process {process.pid} ({process.name()}{suffix})"
    except (OSError, ValueError, psutil.Error):
        return "another process"
