"""What pytest's own output says about a test."""

from __future__ import annotations

import pytest

from conformance import credentials
from conformance.suite.outcomes.checks import Blocked, CheckFailed
from conformance.suite.registry.requirement import Limit


def redact(error: BaseException | None) -> None:
    """Remove credentials from what an error says, before anybody asks it."""
    if isinstance(error, Exception):
        error.args = tuple(credentials.text(each) if isinstance(each, str) else each for each in error.args)
    if isinstance(error, Blocked):
        error.reason = credentials.text(error.reason)


def tell(report: pytest.TestReport, error: BaseException | None, limit: Limit | None, expected: str = "") -> None:
    """Say what ended a test. What fails only for a limit of the specification is skipped, with the limit as reason;
    what fails as it is `expected` to, for this reason, has failed in pytest's sense of an expected failure."""
    if limit is not None and error is not None:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid, 0, f"Skipped: known limit {limit}; seen: {error}")
    elif isinstance(error, CheckFailed):
        report.longrepr = str(error)
        if expected:
            report.outcome = "skipped"
            report.wasxfail = f"reason: {expected}"
    elif isinstance(error, Blocked):
        if error.cause == "circumstances":
            report.outcome = "skipped"
            report.longrepr = (report.nodeid, 0, f"Skipped: {error.reason}")
        else:
            report.longrepr = f"blocked: {error.reason}"
