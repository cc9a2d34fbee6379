"""Tests of the pass rates of tests that run several times."""

from __future__ import annotations

import msgspec

from conformance.report import model, repetitions
from tests.report.test_model import DONE, TODAY, begin, check, ended, entry, registry, started


def lines(*outcomes: str) -> list[str]:
    """Return the pass rates of a test whose repetitions ended with these outcomes."""
    names = [f"t[{number} of {len(outcomes)}]" for number in range(1, len(outcomes) + 1)]
    first = msgspec.structs.replace(begin(dict.fromkeys(names, ("AA-001",))), repeat=len(outcomes))
    events = [
        event
        for name, outcome in zip(names, outcomes, strict=True)
        for event in (started(name, "AA-001"), check(name, "AA-001"), ended(name, outcome))
    ]
    report = model.judge(registry(entry("AA-001")), [first, *events, DONE], TODAY)
    return [str(rate) for rate in repetitions.rates(report)]


def test_an_interrupted_test_counts_neither_as_passed_nor_as_failed() -> None:
    assert lines("passed", "passed", "interrupted") == ["all tests: 2 of 2 runs passed (95 % interval 34.2% to 100.0%)"]


def test_a_test_that_failed_once_is_named() -> None:
    assert lines("passed", "failed") == [
        "all tests: 1 of 2 runs passed (95 % interval 9.5% to 90.5%)",
        "t: 1 of 2 runs passed (95 % interval 9.5% to 90.5%)",
    ]
