"""Find the errors of the suite or its cluster in the events of a ledger. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.suite.outcomes.ledger import AnyEvent, HarnessFault, RunFinished, TestFinished, TestStarted, WorkerLost

_ERROR_STATUSES = (3, 4)
"""pytest's exit statuses for internal errors and wrong usage: both mean a bug of the suite."""


def harness_errors(events: Iterable[AnyEvent], interrupted: bool) -> tuple[str, ...]:
    """Return the distinct harness errors in order of first occurrence."""
    all_events = list(events)
    errors: dict[str, None] = {}
    for event in all_events:
        if isinstance(event, HarnessFault):
            errors[event.what] = None
        elif isinstance(event, WorkerLost) and not interrupted:
            unfinished = _unfinished_tests(all_events, event.worker)
            errors[f"worker {event.worker} died" + (f" during {unfinished[0]}" if unfinished else "")] = None
        elif isinstance(event, RunFinished) and event.status in _ERROR_STATUSES and not errors:
            errors[f"pytest ended with status {event.status}"] = None
    return tuple(errors)


def decisive_events(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    """Return the events without the errors that affect no outcome: failures to clean up, and deaths of workers that
    were not running a test."""
    all_events = list(events)
    return [
        event
        for event in all_events
        if not (isinstance(event, HarnessFault) and event.clearing)
        and not (isinstance(event, WorkerLost) and not _unfinished_tests(all_events, event.worker))
    ]


def _unfinished_tests(events: Iterable[AnyEvent], worker: str) -> list[str]:
    """Return the tests that a worker has started and not finished."""
    started, finished = set(), set()
    for event in events:
        if isinstance(event, TestStarted) and event.worker == worker:
            started.add(event.test)
        elif isinstance(event, TestFinished):
            finished.add(event.test)
    return sorted(started - finished)
