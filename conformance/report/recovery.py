"""Recover the report of a killed run from its ledger on disk, which contains all events until the run was killed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance import documents
from conformance.errors import UsageError
from conformance.report import reading
from conformance.suite.outcomes import ledger_file
from conformance.suite.outcomes.ledger import AnyEvent, HarnessFault, RunStarted, encoded

MARK_FILE = "recovered.jsonl"
"""The file of the ledger that records that the report was recovered."""
KILLED_MESSAGE = "the run was killed; this is what its ledger has"


def events(run: Path) -> list[AnyEvent]:
    """Return the events of a run that ended without a report. Raises UsageError if there is no such ledger, if the run
    has a report, or if it is still in progress."""
    ledger = reading.require_ledger(run, "give the folder of a run, as reports/<run>")
    if (run / reading.NAME).exists():
        raise UsageError(
            f"has its {reading.NAME} already", where=documents.display_path(run), hint="nothing is lost: read that"
        )
    if ledger_file.in_use(ledger):
        raise UsageError(
            "the run is still going on", where=documents.display_path(run), hint="wait for its end, or end it"
        )
    recorded = list(ledger_file.read(ledger))
    start_event(recorded, run)
    return recorded


def start_event(events: Sequence[AnyEvent], run: Path = Path()) -> RunStarted:
    """Return the RunStarted event of a run. Raises UsageError if the ledger does not have it."""
    for event in events:
        if isinstance(event, RunStarted):
            return event
    problem, hint = "the ledger does not have the beginning of the run", "repeat the run: there is nothing to recover"
    raise UsageError(problem, where=documents.display_path(run), hint=hint)


def mark_killed(run: Path) -> None:
    """Record in the ledger that the run was killed. A recovered report is therefore never conformant, because any
    program of this user could have written to the ledger. Raises UsageError if the ledger cannot be written."""
    event = HarnessFault(worker="run", what=KILLED_MESSAGE)
    try:
        (run / reading.LEDGER / MARK_FILE).write_bytes(encoded(event) + b"\n")
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}", where=documents.display_path(run), hint="make room"
        ) from error
