"""The end of a run in which nothing happens any more: it has an end whatever hangs, and then no verdict.

Only events that workers send through their pipes count: any program of this user could write to a file for ever.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import psutil

from conformance import regular
from conformance.cluster import pace
from conformance.run.watch import Watch
from conformance.suite.outcomes.book import Book
from conformance.suite.plugin import STACKS
from conformance.suite.settings import RunSettings

LONGEST = 1800.0
"""Seconds after which a run without an event is ended. The longest wait of a scene lasts 120 s, and 600 s on a machine
that is too slow for it; the longest scenes take some 80 s."""
END_WITHIN = 300.0
"""Seconds that workers have to clear up, and this process to end, before they are killed."""
LOOK_EVERY = 1.0


class Watchdog:
    """Ends the run of this process, step by step: an interrupt, SIGKILL for all that it has started, and `last`, which
    reports without pytest and returns the exit code of this process."""

    def __init__(self, settings: RunSettings, book: Book, watch: Watch, last: Callable[[], int]) -> None:
        self._settings, self._book, self._watch, self._last = settings, book, watch, last
        self._ended, self._ending = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._guard, name="watchdog", daemon=True)
        self._main = threading.get_ident()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._ending:
            self._ended.set()

    def _guard(self) -> None:
        if not self._passes(LONGEST, lambda: len(self._book.events_after(0))):
            return
        self._watch.stuck = True
        limit = f"{pace.patience(LONGEST):.0f} s"
        self._watch.fault(f"nothing has happened for {limit}: the run was ended; {self._settings.log} has the stacks")
        self._write_stacks()
        signal.pthread_kill(self._main, signal.SIGINT)
        for end in (self._kill, self._exit):
            if not self._passes(END_WITHIN):
                return
            with self._ending:  # not while the main thread goes on after all
                if not self._ended.is_set():
                    end()

    def _passes(self, seconds: float, moved: Callable[[], object] = lambda: None) -> bool:
        """Return True once nothing has moved for so many seconds, and False if the run ends before. Time in which this
        process did not run does not count."""
        quiet, last, before = 0.0, moved(), time.monotonic()
        while quiet < pace.patience(seconds):
            if self._ended.wait(min(LOOK_EVERY, seconds)):
                return False
            now = time.monotonic()
            quiet, before = quiet + min(now - before, 2 * LOOK_EVERY), now
            if (present := moved()) != last:
                quiet, last = 0.0, present
        return True

    def _write_stacks(self) -> None:
        """Add the state of each process of the run to its log, and the stacks of those that are Python's."""
        with contextlib.suppress(OSError), regular.opened(self._settings.log, "ab") as file:
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    file.write(f"process {process.pid} ({process.name()}) is {process.status()}\n".encode())
            file.write(f"\nstacks of the controlling process {os.getpid()}:\n".encode())
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
            for pid in self._watch.pids():
                file.write(f"\nstacks of the worker {pid}, unless it is stopped:\n".encode())
                file.flush()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, STACKS)
                self._ended.wait(LOOK_EVERY)

    def _kill(self) -> None:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _exit(self) -> None:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # pytest's are its log
        code = self._last()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
