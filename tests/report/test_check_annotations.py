"""Tests of how the results of a run become annotations of GitHub's checks."""

from __future__ import annotations

from conformance.report import check_annotations, document
from conformance.suite.registry.requirement import Level
from tests.report.test_cases import INTERRUPTED, judged, real


def test_each_cause_is_one_annotation_whatever_its_values() -> None:
    report = real(violation="100 % wrong,\n::error::it is")
    [line] = check_annotations.commands(document.document(report))
    assert line.startswith("::error title=AA-001::100 %25 wrong,%0A::error::it is%0Ain t: w: expected ")
    assert "\n" not in line


def test_a_failure_that_does_not_decide_is_a_warning() -> None:
    lines = check_annotations.commands(
        document.document(judged(("failed", Level.SHOULD), ("stale", Level.MUST), ("blocked", Level.MUST)))
    )
    assert [line.split("::")[1] for line in lines] == [
        "warning title=AA-001",
        "error title=AA-002",
        "warning title=1 blocked",
    ]
    assert check_annotations.commands(document.document(judged(("passed", Level.MUST)))) == []


def test_an_interrupted_run_is_an_error() -> None:
    report = judged(("passed", Level.MUST), ("not run", Level.MUST), end=[INTERRUPTED])
    [line] = check_annotations.commands(document.document(report))
    assert line == "::error title=no verdict::the run was interrupted: the report is incomplete"


def test_there_are_no_more_than_github_shows() -> None:
    assert (
        len(check_annotations.commands(document.document(judged(*[("failed", Level.MUST)] * 12))))
        == check_annotations.MAX_ANNOTATIONS
    )
