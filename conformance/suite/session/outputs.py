"""Describe the outcome of a test in pytest's own output."""

from __future__ import annotations

import pytest

from conformance import credentials
from conformance.suite.outcomes.checks import Blocked, CheckFailed
from conformance.suite.registry.requirement import Limit


def redact(error: BaseException | None) -> None:
    """Remove credentials from the message of an exception, before anything reads it."""
    if isinstance(error, Exception):
        error.args = tuple(
            credentials.redact(argument) if isinstance(argument, str) else argument for argument in error.args
        )
    if isinstance(error, Blocked):
        error.reason = credentials.redact(error.reason)


def describe(report: pytest.TestReport, error: BaseException | None, limit: Limit | None, expected: str = "") -> None:
    """Describe in the report of a test how it ended. A test that failed only because of a known limit of the
    specification is reported as skipped, with the limit as the reason; a test that failed as `expected` (the reason) is
    reported as an expected failure in pytest's sense."""
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
