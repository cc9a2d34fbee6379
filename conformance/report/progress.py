"""Show the progress of a run from the events of its ledger, and failures as soon as they occur."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from threading import Event as Signal
from threading import Thread
from types import TracebackType

from rich.console import Console
from rich.status import Status
from rich.text import Text

from conformance.evidence.values import one_line
from conformance.history.differences import reduced
from conformance.report import causes, facts, time_left
from conformance.report.marks import MARKS
from conformance.report.model import Outcome
from conformance.report.terminal import clean
from conformance.report.time_left import TimeLeft
from conformance.suite.outcomes.ledger import (
    AnyEvent,
    Check,
    HarnessFault,
    Phase,
    ScenePlayed,
    TestFinished,
    TestStarted,
    WorkerLost,
)
from conformance.suite.outcomes.ledger_file import RunLedger

POLL_SECONDS = 0.1
"""Seconds between two polls of the ledger: the maximum age of the display."""
PROGRESS_SECONDS = 60.0
"""Seconds between two progress lines if the output is not a terminal."""
MAX_CHECKS = 2
"""Maximum number of failed checks, and of unknown checks, that are printed for one requirement in one test; the other
checks are only counted."""


class Progress:
    """Shows the progress of a run from a separate thread while its ledger grows: on a terminal as a live line,
    otherwise as one line every `interval` seconds. Failures are shown as lines in both cases. `known_limits` are the
    requirements whose failure is a known limit of the specification, `expected` the requirements that are expected to
    fail. `verbose` adds lines for each test and phase. `time_left` estimates the remaining time."""

    def __init__(
        self,
        run_ledger: RunLedger,
        total: int,
        console: Console,
        start: float,
        *,
        known_limits: Collection[str] = frozenset(),
        expected: Collection[str] = frozenset(),
        verbose: bool = False,
        interval: float = PROGRESS_SECONDS,
        time_left: TimeLeft | None = None,
    ) -> None:
        self._known_limits, self._expected, self._verbose, self._interval = known_limits, expected, verbose, interval
        self._run_ledger, self._total, self._console, self._start = run_ledger, total, console, start
        self._position = self._finished_count = self._failed_count = self._unjudged_count = 0
        self._time_left = time_left
        self._first_start: float | None = None
        """Time at which the first scene started, by the monotonic clock."""
        self._ready_workers: set[str] = set()
        """The workers whose cluster is ready; the time to start a cluster does not count as part of a scene."""
        self._last_print = time.monotonic()
        self._printed_reasons: set[str] = set()
        """The reasons of blocked tests that have been printed."""
        self._workers: dict[str, str] = {}
        self._tests: dict[str, str] = {}
        self._checks_by_test: dict[str, list[Check]] = {}
        self._printed_by_test: dict[str, list[Check]] = {}
        """The checks of `_checks_by_test` that have been printed."""
        self._printed_violations: set[str] = set()
        """The invariants for which a violation has been printed."""
        self._ended_workers: set[str] = set()
        self._printed_errors: set[str] = set()
        """The harness errors that have been printed."""
        self._status: Status | None = None
        self._end_signal = Signal()
        self._thread = Thread(target=self._follow_ledger, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._status = self._console.status(Text("starting"))
            self._status.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_signal.set()
        self._thread.join()
        if self._status is not None:
            self._status.stop()

    def _follow_ledger(self) -> None:
        while True:
            is_last = self._end_signal.wait(POLL_SECONDS)
            for event in self._run_ledger.events_after(self._position):
                self._position += 1
                self._handle(event)
            if self._status is not None:
                self._status.update(Text(f"{self._summary()}  {self._activity()}"))
            if is_last:
                return
            if self._status is None and (now := time.monotonic()) - self._last_print >= self._interval:
                self._last_print = now
                self._print(
                    time.time(),
                    self._summary() if self._finished_count else f"{self._summary()}  {self._activity()}",
                    "dim",
                )

    def _summary(self) -> str:
        parts = [f"{self._finished_count} of {self._total} tests", f"{self._failed_count} failed"]
        if self._unjudged_count:
            parts.append(f"{self._unjudged_count} not judged")
        if self._time_left is not None and self._first_start is not None:
            parts.append(time_left.words(self._time_left.seconds(time.monotonic() - self._first_start)))
        return ", ".join(filter(None, parts))

    def _activity(self) -> str:
        return " · ".join(f"{worker}: {phase}" for worker, phase in sorted(self._workers.items()))

    def _handle(self, event: AnyEvent) -> None:
        match event:
            case Phase():
                if event.phase == "ready":
                    self._ready_workers.add(event.worker)
                    self._start_timing(event.worker)
                phase = event.phase + (f" ({event.detail})" if event.detail else "")
                running = self._tests.get(event.worker)
                self._workers[event.worker] = running if running and event.phase == "ready" else clean(phase)
                if not event.detail:
                    self._print_verbose(event.wall, f"{event.worker}: {event.phase}")
            case TestStarted():
                self._workers[event.worker] = self._tests[event.worker] = event.test
                self._start_timing(event.worker)
                if self._status is None and event.worker not in self._ended_workers:
                    self._print_verbose(event.wall, f"{event.worker}: {event.test}")
            case Check() if event.outcome != "passed":
                self._checks_by_test.setdefault(event.test, []).append(event)
                self._print_failure(event)
            case TestFinished():
                self._finished_count += 1
                self._first_start = self._first_start or time.monotonic()
                if self._time_left is not None:
                    self._time_left.end_test(event.test)
                self._workers[event.worker] = "between tests"
                self._tests.pop(event.worker, None)
                self._finish_test(event)
            case ScenePlayed():
                end = f', ended in waiting for "{event.ended_by}"' if event.ended_by else ""
                self._print_verbose(event.wall, f"{event.worker}: played {event.scene} {event.seconds:.1f} s{end}")
            case WorkerLost():
                self._workers.pop(event.worker, None)
                self._print(event.wall, f"{event.worker}: died", "bold magenta")
            case HarnessFault() if event.worker in self._ended_workers or event.what in self._printed_errors:
                pass  # all tests of a worker that has given up, or of one scene, end with the same error
            case HarnessFault():
                self._printed_errors.add(event.what)
                if event.final:
                    self._ended_workers.add(event.worker)
                self._print(event.wall, f"{event.worker}: harness error: {event.what}", "bold magenta")
            case _:
                pass

    def _start_timing(self, worker: str) -> None:
        """Start to measure the time of a worker's scene, if its cluster is ready and a test is running."""
        if worker in self._ready_workers and (test := self._tests.get(worker)):
            self._first_start = self._first_start or time.monotonic()
            if self._time_left is not None:
                self._time_left.start_test(test, time.monotonic() - self._first_start)

    def _finish_test(self, event: TestFinished) -> None:
        """Count a finished test. Its failures have been printed before; each reason for blocked tests is printed
        once."""
        failing = self._checks_by_test.pop(event.test, [])
        printed = self._printed_by_test.pop(event.test, [])
        ids = sorted({check.id for check in failing if check.outcome == "failed"})
        if event.outcome == "failed" and not set(ids) <= set(self._expected):
            self._failed_count += 1
        self._unjudged_count += event.outcome in ("blocked", "harness-error")
        if event.worker in self._ended_workers:
            return
        self._print_omitted(event, failing, printed)
        named_ids = f" ({', '.join(ids[:4])}{f' and {len(ids) - 4} more' if len(ids) > 4 else ''})" if ids else ""
        test_seconds = sum(event.seconds.values())
        text = f"{self._finished_count}/{self._total} {event.outcome} {event.test}{named_ids} {test_seconds:.1f} s"
        style = MARKS[Outcome(event.outcome)].style if event.outcome != "interrupted" else ""
        if self._verbose:
            self._print(event.wall, text, style)
        elif event.outcome == "blocked" and event.reason not in self._printed_reasons:
            self._printed_reasons.add(event.reason)
            self._print(event.wall, f"{MARKS[Outcome.BLOCKED].symbol} blocked: {event.reason} ({event.test})", style)

    def _print_omitted(self, event: TestFinished, failing: Collection[Check], printed: Collection[Check]) -> None:
        """Print, for each requirement, how many failed and unjudged checks were not printed."""
        omitted_counts = Counter((c.id, c.outcome) for c in failing) - Counter((c.id, c.outcome) for c in printed)
        for (id, outcome), count in sorted(omitted_counts.items()):
            adjective = "failed" if outcome == "failed" else "unjudged"
            self._print(
                event.wall, f"  {count} more {adjective} check{'s' * (count > 1)} of {id} ({event.test})", "dim"
            )

    def _print_failure(self, check: Check) -> None:
        """Print the expected and the observed value of a check as soon as they are known, once for all requirements
        that fail with the same value. A value that could not be determined counts as blocked, not failed. A requirement
        that is expected to fail or to be blocked gets one line per test."""
        printed = self._printed_by_test.setdefault(check.test, [])
        outcome = Outcome.FAILED if check.outcome == "failed" else Outcome.BLOCKED
        if check.outcome == "failed" and check.id in self._known_limits:
            outcome = Outcome.KNOWN_LIMIT
        elif check.id in self._expected:
            if self._verbose or [c.id for c in self._checks_by_test[check.test]].count(check.id) == 1:
                mark = MARKS[Outcome.EXPECTED_FAILURE]
                self._print(
                    check.wall, f"{mark.symbol} {check.id} {check.what}, as expected ({check.test})", mark.style
                )
            printed.append(check)
            return
        if not self._verbose and Counter((c.id, c.outcome) for c in printed)[check.id, check.outcome] >= MAX_CHECKS:
            return
        printed.append(check)
        same_values = [c for c in printed if (c.what, c.seen) == (check.what, check.seen)]
        expected, observed = reduced(check.expected, check.seen)
        mark = MARKS[outcome]
        self._print(check.wall, f"{mark.symbol} {check.id} {check.what} ({check.test})", mark.style)
        if len(same_values) > 1:
            self._print(check.wall, f"  as {same_values[0].id}", "dim")
            return
        if facts.is_violation(check.what, check.seen) and not self._verbose:
            if check.id in self._printed_violations:
                return
            self._printed_violations.add(check.id)
        if check.expected not in (None, check.what):
            self._print(check.wall, f"  expected: {one_line(expected)}", "")
        self._print(check.wall, f"  seen:     {one_line(causes.nearest_miss(check.seen) or observed)}", "")

    def _print_verbose(self, wall: float, text: str) -> None:
        """Print a line in verbose mode only."""
        if self._verbose:
            self._print(wall, text, "dim")

    def _print(self, wall: float, text: str, style: str) -> None:
        line = Text(f"[{wall - self._start:6.1f} s] ", "dim")
        line.append(clean(text), style)
        self._console.print(line, soft_wrap=True)
