"""A watchdog that ends a run in which nothing happens any more, so that every run ends. Such a run has no verdict.

Only events that workers send through their pipes count as progress: any program of this user could keep writing to a
file.
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
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.plugin import STACKS_SIGNAL
from conformance.suite.settings import RunSettings

MAX_IDLE_SECONDS = 1800.0
"""Seconds without an event after which a run is ended. The longest wait of a scene lasts 120 s, or 600 s on a machine
that is too slow; the longest scenes take about 80 s."""
END_SECONDS = 300.0
"""Seconds that workers have to clean up and this process has to end before the next, harder step."""
CHECK_INTERVAL = 1.0


class Watchdog:
    """Ends the run of this process step by step: first an interrupt, then SIGKILL for all processes that it has
    started, and finally `conclude`, which reports without pytest and returns the exit code of this process."""

    def __init__(self, settings: RunSettings, run_ledger: RunLedger, watch: Watch, conclude: Callable[[], int]) -> None:
        self._settings, self._run_ledger, self._watch, self._conclude = settings, run_ledger, watch, conclude
        self._ended, self._ending = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._guard, name="watchdog", daemon=True)
        self._main = threading.get_ident()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._ending:
            self._ended.set()

    def _guard(self) -> None:
        if not self._is_idle_for(MAX_IDLE_SECONDS, lambda: len(self._run_ledger.events_after(0))):
            return
        self._watch.is_stuck = True
        idle_time = f"{pace.patience(MAX_IDLE_SECONDS):.0f} s"
        self._watch.record_fault(
            f"nothing has happened for {idle_time}: the run was ended; {self._settings.log} has the stacks"
        )
        self._write_stacks()
        signal.pthread_kill(self._main, signal.SIGINT)
        for end_step in (self._kill, self._exit):
            if not self._is_idle_for(END_SECONDS):
                return
            with self._ending:  # the main thread may go on after all
                if not self._ended.is_set():
                    end_step()

    def _is_idle_for(self, seconds: float, progress: Callable[[], object] = lambda: None) -> bool:
        """Return True once `progress` has not changed for `seconds`, and False if the run ends before that. Time in
        which this process did not run does not count."""
        quiet_seconds, last_value, checked_at = 0.0, progress(), time.monotonic()
        while quiet_seconds < pace.patience(seconds):
            if self._ended.wait(min(CHECK_INTERVAL, seconds)):
                return False
            current_time = time.monotonic()
            quiet_seconds, checked_at = quiet_seconds + min(current_time - checked_at, 2 * CHECK_INTERVAL), current_time
            if (value := progress()) != last_value:
                quiet_seconds, last_value = 0.0, value
        return True

    def _write_stacks(self) -> None:
        """Write the state of each process of the run to the run's log, and the stacks of the Python processes."""
        with contextlib.suppress(OSError), regular.open_file(self._settings.log, "ab") as file:
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
                    os.kill(pid, STACKS_SIGNAL)
                self._ended.wait(CHECK_INTERVAL)

    def _kill(self) -> None:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _exit(self) -> None:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # pytest has replaced them by its log
        code = self._conclude()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
