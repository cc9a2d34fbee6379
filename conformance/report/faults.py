"""Find the errors of the suite or its cluster in the events of a ledger. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.suite.outcomes.ledger import AnyEvent, HarnessFault, RunFinished, TestFinished, TestStarted, WorkerLost

_BROKEN = (3, 4)
"""pytest's exit statuses for internal errors and wrong usage: both mean a bug of the suite."""


def of(events: Iterable[AnyEvent], interrupted: bool) -> tuple[str, ...]:
    """Return the distinct harness errors in order of first occurrence."""
    listed = list(events)
    errors: dict[str, None] = {}
    for event in listed:
        if isinstance(event, HarnessFault):
            errors[event.what] = None
        elif isinstance(event, WorkerLost) and not interrupted:
            torn = _torn(listed, event.worker)
            errors[f"worker {event.worker} died" + (f" during {torn[0]}" if torn else "")] = None
        elif isinstance(event, RunFinished) and event.status in _BROKEN and not errors:
            errors[f"pytest ended with status {event.status}"] = None
    return tuple(errors)


def decisive(events: Iterable[AnyEvent]) -> list[AnyEvent]:
    """Return the events without the errors that affect no outcome: failures to clean up, and deaths of workers that
    were not running a test."""
    listed = list(events)
    return [
        event
        for event in listed
        if not (isinstance(event, HarnessFault) and event.clearing)
        and not (isinstance(event, WorkerLost) and not _torn(listed, event.worker))
    ]


def _torn(events: Iterable[AnyEvent], worker: str) -> list[str]:
    """Return the tests that a worker has started and not finished."""
    begun, ended = set(), set()
    for event in events:
        if isinstance(event, TestStarted) and event.worker == worker:
            begun.add(event.test)
        elif isinstance(event, TestFinished):
            ended.add(event.test)
    return sorted(begun - ended)
