"""Turn the failures of a run into expected failures, like a linter's baseline: later runs report only new failures.
Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from conformance.evidence.values import one_line
from conformance.implementation.fields import ExpectedFailure
from conformance.report.model import UNSELECTED_REASONS, Outcome, Report, Result

MAX_REASON_LENGTH = 160
"""Maximum length of a reason in characters."""


def expected_failures(
    report: Report, earlier: Iterable[ExpectedFailure], expires: datetime.date, reason: str = ""
) -> list[ExpectedFailure]:
    """Return the failures that count against a run as expected failures. Entries of `earlier` that still fail keep
    their reason, and their date unless it has passed; entries that this run did not judge are kept; entries that pass
    are dropped."""
    earlier_by_id = {entry.id: entry for entry in earlier}
    day = datetime.date.fromtimestamp(report.started.wall)
    results = {result.requirement.id: result for result in report.results}
    unjudged = [
        entry for entry in earlier_by_id.values() if entry.id not in results or not _is_judged(results[entry.id])
    ]
    failures = []
    for result in report.results:
        if not _fails(result):
            continue
        entry = earlier_by_id.get(result.requirement.id)
        if entry is None:
            entry = ExpectedFailure(result.requirement.id, reason or _reason(result, day), expires=expires)
        failures.append(
            ExpectedFailure(entry.id, entry.reason, entry.link, expires) if entry.has_expired(day) else entry
        )
    return sorted((*unjudged, *failures), key=lambda entry: entry.id)


def unjudged(report: Report) -> list[str]:
    """Return the ids of the selected, decisive requirements for which this run does not know whether they fail, because
    the run was interrupted, or the suite or its cluster failed."""
    decisive = (
        result for result in report.results if result.requirement.decides and result.reason not in UNSELECTED_REASONS
    )
    return [result.requirement.id for result in decisive if not _is_judged(result)]


def _fails(result: Result) -> bool:
    """Return whether a decisive requirement does not hold: it failed (expectedly or not), or the implementation
    prevented its judgment."""
    if not result.requirement.decides:
        return False
    is_blocked = result.outcome is Outcome.BLOCKED and result.cause == "implementation"
    is_expired = result.outcome is Outcome.STALE_EXPECTATION and bool(result.failures)
    return is_blocked or is_expired or result.outcome in (Outcome.FAILED, Outcome.EXPECTED_FAILURE)


def _is_judged(result: Result) -> bool:
    return result.reason not in UNSELECTED_REASONS and result.outcome not in (Outcome.NOT_RUN, Outcome.HARNESS_ERROR)


def _reason(result: Result, day: datetime.date) -> str:
    entry = result.requirement
    reason = entry.violation or entry.text
    if result.outcome is Outcome.BLOCKED:
        reason = f"blocked: {result.reason}"
    return one_line(f"since {day}: {reason}", MAX_REASON_LENGTH)
