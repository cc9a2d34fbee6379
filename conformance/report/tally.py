"""Count requirements by outcome for display. As in JUnit, `failed` includes only failures that count against the run.
Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from conformance.report.model import Outcome, Report, Result

UNDECIDED = "failed-undecided"
"""The word for a failure that does not count against the run."""
ORDER = (
    Outcome.FAILED,
    Outcome.STALE_EXPECTATION,
    Outcome.HARNESS_ERROR,
    Outcome.BLOCKED,
    UNDECIDED,
    Outcome.EXPECTED_FAILURE,
    Outcome.KNOWN_LIMIT,
    Outcome.NOT_RUN,
    Outcome.PASSED,
    Outcome.NOT_CLAIMED,
)


def word(result: Result, report: Report) -> str:
    """Return the outcome of a requirement as a word, which is UNDECIDED for a failure that does not count against the
    run."""
    failed = result.outcome is Outcome.FAILED
    return UNDECIDED if failed and not report.counts_against(result) else str(result.outcome)


def counts(results: Iterable[Result], report: Report) -> dict[str, int]:
    """Return the number of requirements by word, in display order."""
    numbers = Counter(word(result, report) for result in results)
    return {str(name): numbers[name] for name in ORDER if numbers[name]}
