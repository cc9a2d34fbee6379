"""Progress reports of long operations. An operation reports to a callable, so that it is independent of terminals."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console


class ProgressReporter(Protocol):
    """Called at the start of each step with the subject and the step."""

    def __call__(self, subject: str, step: str, /) -> None:
        """Report that `step` of `subject` starts."""


def report_nothing(subject: str, step: str, /) -> None:
    """Report nothing."""


MESSAGE_INTERVAL_SECONDS = 10.0
"""Seconds between two messages about one long step."""


class ThrottledReporter:
    """Reports the progress of one step, with at most one message every MESSAGE_INTERVAL_SECONDS seconds, and no message
    before that."""

    def __init__(self, report: ProgressReporter) -> None:
        self._report, self._last = report, time.monotonic()

    def __call__(self, subject: str, step: str) -> None:
        """Report `step`, unless the last message was less than MESSAGE_INTERVAL_SECONDS seconds ago."""
        if (now := time.monotonic()) - self._last >= MESSAGE_INTERVAL_SECONDS:
            self._last = now
            self._report(subject, step)


def report_notice(subject: str, step: str, /) -> None:
    """Write a step to standard error. This ProgressReporter is only for unusual conditions."""
    print(f"{subject}: {step}", file=sys.stderr, flush=True)  # noqa: T201 - the terminal itself


@contextmanager
def terminal(title: str) -> Iterator[ProgressReporter]:
    """Report to standard error: a live line on a terminal, plain lines elsewhere, and the total time at the end.

    If there is no step, nothing is printed, not even the total time.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    start = time.monotonic()
    has_reported = False

    def elapsed() -> str:
        return f"[{time.monotonic() - start:6.1f} s]"

    if console.is_terminal:
        with console.status(title) as status:

            def report_live(subject: str, step: str, /) -> None:
                nonlocal has_reported
                has_reported = True
                console.print(f"{elapsed()} {subject}: {step}", markup=False)
                status.update(f"{subject}: {step}")

            yield report_live
    else:

        def report_line(subject: str, step: str, /) -> None:
            nonlocal has_reported
            has_reported = True
            print(f"{elapsed()} {subject}: {step}", file=sys.stderr, flush=True)  # noqa: T201 - the terminal itself

        yield report_line
    if has_reported:
        console.print(f"{elapsed()} {title}: done", markup=False)
