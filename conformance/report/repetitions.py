"""Pass rates for `--repeat N`: how often each test passed, with a confidence interval for the true rate. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from conformance.report.model import Report
from conformance.suite.scenes.repeated import without_mark

_Z = NormalDist().inv_cdf(0.975)
ALL_TESTS = "all tests"


@dataclass(frozen=True)
class Rate:
    """`passed` of `runs` runs of a test passed."""

    test: str
    runs: int
    passed: int

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % confidence interval of the true rate (Wilson): 20 of 20 means a rate of at least 84 %, not
        100 %."""
        rate, square = self.passed / self.runs, _Z**2 / self.runs
        middle = rate + square / 2
        spread = _Z * math.sqrt(rate * (1 - rate) / self.runs + square / 4 / self.runs)
        return max(0.0, (middle - spread) / (1 + square)), min(1.0, (middle + spread) / (1 + square))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.test}: {self.passed} of {self.runs} runs passed (95 % interval {low:.1%} to {high:.1%})"


def rates(report: Report) -> list[Rate]:
    """Return the rate over all tests, then the rate of each test that did not always pass; empty if tests were not
    repeated. Interrupted tests count as neither passed nor failed."""
    if report.started.repeat == 1:
        return []
    runs: dict[str, list[bool]] = {}
    for test in (test for test in report.tests if test.outcome != "interrupted"):
        runs.setdefault(without_mark(test.test, report.started.repeat), []).append(test.outcome == "passed")
    unstable_rates = [Rate(name, len(passed), sum(passed)) for name, passed in sorted(runs.items()) if not all(passed)]
    all_outcomes = [outcome for passed in runs.values() for outcome in passed]
    return [Rate(ALL_TESTS, len(all_outcomes), sum(all_outcomes)), *unstable_rates] if all_outcomes else []
