"""Locks between processes: whoever waits longer than a second says for whom, and nobody waits for ever.

Only a process that is stopped or hangs holds a lock for long, and it cannot say so itself: its id is in the lock file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from conformance.cluster.progress import Report
from conformance.errors import UsageError

PATIENCE = 1.0
"""Seconds of waiting before the first word about it."""
MOMENT = 60.0
"""Seconds after which a lock that is held for moments is given up: the longest of them, prune, takes ten."""
BUILD = 3600.0
"""Seconds after which a lock under which somebody builds is given up; a cold build takes ten minutes on two cores."""


@contextmanager
def held(path: Path, report: Report, *, within: float | None = None) -> Iterator[None]:
    """Holds the lock file `path`. Raises UsageError when another process holds it for more than `within` seconds,
    by default MOMENT."""
    within = within or MOMENT
    lock = FileLock(path, mode=0o600)
    try:
        lock.acquire(timeout=min(PATIENCE, within))
    except Timeout:
        report("lock", f"waiting for {_holder(path)} to release {path}")
        try:
            lock.acquire(timeout=within)
        except Timeout:
            raise UsageError(
                f"{_holder(path)} holds this lock for more than {within:g} s",
                where=str(path),
                hint="let it go on (kill -CONT) or end it",
            ) from None
    try:
        with suppress(OSError):  # a full disk: whoever makes room needs the lock, too
            path.write_text(str(os.getpid()))
        yield
    finally:
        lock.release()


def _holder(path: Path) -> str:
    """Who holds a lock, in words."""
    try:
        process = psutil.Process(int(path.read_text()))
        stopped = ", which is stopped" if process.status() == psutil.STATUS_STOPPED else ""
        return f"process {process.pid} ({process.name()}{stopped})"
    except (OSError, ValueError, psutil.Error):
        return "another process"
