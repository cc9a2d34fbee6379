"""Tests of `report compare`: how changes are classified, and the exit codes of comparisons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from test_document import sample_report

from conformance import cli
from conformance.errors import Exit
from conformance.report import comparison, comparison_text, document, recorded
from conformance.report.comparison import ComparedReport, RequirementChange, RequirementResult
from conformance.report.model import Outcome

SIDE = ComparedReport("a", "conformant", {"suite": "1"}, {}, {})
PASSED, FAILED = RequirementResult(Outcome.PASSED), RequirementResult(Outcome.FAILED, fails=True)
BLOCKED, NOT_RUN = RequirementResult(Outcome.BLOCKED), RequirementResult(Outcome.NOT_RUN)
EXPECTED = RequirementResult(Outcome.EXPECTED_FAILURE, fails=True)
STALE, EXPIRED = RequirementResult(Outcome.STALE_EXPECTATION), RequirementResult(Outcome.STALE_EXPECTATION, fails=True)
LIMIT = RequirementResult(Outcome.KNOWN_LIMIT)
BROKEN, UNCLAIMED = RequirementResult(Outcome.HARNESS_ERROR), RequirementResult(Outcome.NOT_CLAIMED)


def side(suite: str = "1", **markers: float) -> ComparedReport:
    return replace(SIDE, facts={"suite": suite}, markers=markers)


def compared(
    old: RequirementResult | None, new: RequirementResult | None, *, suites: tuple[str, str] = ("1", "1")
) -> comparison.Comparison:
    """Compare two reports that differ in one requirement and have both passed another one."""
    sides = []
    for suite, outcome in zip(suites, (old, new), strict=True):
        both = {"BB-001": PASSED} | ({"AA-001": outcome} if outcome is not None else {})
        sides.append(replace(side(suite), requirements=both))
    return comparison.compare(*sides)


@pytest.mark.parametrize(
    ("old", "new", "change", "code"),
    [
        (PASSED, FAILED, RequirementChange.NEWLY_FAILING, Exit.REGRESSION),
        (PASSED, EXPECTED, RequirementChange.NEWLY_FAILING, Exit.REGRESSION),
        (STALE, FAILED, RequirementChange.NEWLY_FAILING, Exit.REGRESSION),
        (LIMIT, FAILED, RequirementChange.NEWLY_FAILING, Exit.REGRESSION),
        (PASSED, BLOCKED, RequirementChange.NEWLY_BLOCKED, Exit.REGRESSION),
        (PASSED, UNCLAIMED, RequirementChange.NO_LONGER_CLAIMED, Exit.PARTIAL),
        (FAILED, UNCLAIMED, RequirementChange.NO_LONGER_CLAIMED, Exit.PARTIAL),
        (BLOCKED, UNCLAIMED, RequirementChange.NO_LONGER_CLAIMED, Exit.PARTIAL),
        (PASSED, NOT_RUN, RequirementChange.NO_LONGER_JUDGED, Exit.PARTIAL),
        (PASSED, BROKEN, RequirementChange.NO_LONGER_JUDGED, Exit.PARTIAL),
        (FAILED, BLOCKED, RequirementChange.NO_LONGER_JUDGED, Exit.PARTIAL),
        (PASSED, None, RequirementChange.NO_LONGER_JUDGED, Exit.PARTIAL),
        (FAILED, PASSED, RequirementChange.FIXED, Exit.CONFORMANT),
        (EXPECTED, STALE, RequirementChange.FIXED, Exit.CONFORMANT),
        (EXPIRED, PASSED, RequirementChange.FIXED, Exit.CONFORMANT),
        (FAILED, LIMIT, RequirementChange.FIXED, Exit.CONFORMANT),
        (None, FAILED, RequirementChange.FAILING, Exit.CONFORMANT),
        (BLOCKED, FAILED, RequirementChange.FAILING, Exit.CONFORMANT),
        (NOT_RUN, PASSED, RequirementChange.PASSING, Exit.CONFORMANT),
        (UNCLAIMED, PASSED, RequirementChange.PASSING, Exit.CONFORMANT),
        (PASSED, PASSED, None, Exit.CONFORMANT),
        (FAILED, EXPECTED, None, Exit.CONFORMANT),
        (FAILED, EXPIRED, None, Exit.CONFORMANT),
        (EXPIRED, FAILED, None, Exit.CONFORMANT),
        (PASSED, LIMIT, None, Exit.CONFORMANT),
        (NOT_RUN, UNCLAIMED, None, Exit.CONFORMANT),
        (BLOCKED, NOT_RUN, None, Exit.CONFORMANT),
        (None, BLOCKED, None, Exit.CONFORMANT),
    ],
)
def test_a_change_is_named_and_decides_the_exit_code(
    old: RequirementResult | None, new: RequirementResult | None, change: RequirementChange | None, code: Exit
) -> None:
    difference = compared(old, new)
    assert [entry.change for entry in difference.changes] == ([change] if change else [])
    assert difference.exit is code


def test_another_suite_may_lack_a_requirement() -> None:
    assert compared(PASSED, None, suites=("1", "2")).changes == ()


def test_reports_without_a_common_requirement_are_not_compared() -> None:
    old, new = (replace(SIDE, requirements={id: PASSED}) for id in ("AA-001", "AA-002"))
    difference = comparison.compare(old, new)
    assert difference.exit is Exit.NOTHING_RAN
    assert comparison_text.headline(difference).startswith("nothing to compare")


@pytest.mark.parametrize(("old", "new", "slower"), [(4.0, 6.5, True), (4.0, 6.0, False), (0.1, 0.9, False)])
def test_a_marker_is_slower_by_half_and_by_a_second(old: float, new: float, slower: bool) -> None:
    difference = comparison.compare(side(ready=old, deleted=1.0), side(ready=new))
    assert [entry.marker for entry in difference.slower] == (["ready"] if slower else [])


def test_times_decide_nothing() -> None:
    difference = replace(compared(PASSED, PASSED), slower=(comparison.SlowerMarker("deploy/pods-ready", 1.0, 60.0),))
    assert difference.exit is Exit.CONFORMANT
    assert "  deploy/pods-ready: 1.0 s → 60.0 s" in comparison_text.text(difference)


def test_facts_that_differ_are_reported() -> None:
    assert compared(PASSED, PASSED, suites=("1", "2")).differing == {"suite": ("1", "2")}


def test_a_known_limit_of_a_report_does_not_fail() -> None:
    content = document.document(sample_report())
    (entry,) = [candidate for candidate in content["verdict"]["requirements"] if candidate["id"] == "AA-002"]
    assert comparison.compared_report(content, "a").requirements["AA-002"].fails
    entry["outcome"] = "known-limit"
    requirement = comparison.compared_report(content, "a").requirements["AA-002"]
    assert (requirement.fails, requirement.holds) == (False, True)


def test_values_of_an_implementation_cannot_change_markdown() -> None:
    hostile = "seen `</details>` | <b>bold</b>\n# heading \x1b[31m @everybody"
    difference = compared(PASSED, replace(FAILED, reason=hostile, text="Text of AA-001."))
    (row,) = [line for line in comparison_text.markdown(difference) if line.startswith("| AA-001")]
    code = "`` seen `</details>` \\| <b>bold</b> # heading \\x1b[31m @everybody ``"
    assert row == f"| AA-001 |  |  | Text of AA-001. | {code} |"


def test_markdown_fits_into_a_comment_and_lists_the_worst() -> None:
    """A comment on GitHub has at most 65,536 characters."""
    outcomes = {f"AA-{n:03}": (PASSED, replace(FAILED, reason="x" * 900, text="y" * 500)) for n in range(200)}
    outcomes |= {f"BB-{n:03}": (FAILED, replace(PASSED, text="z" * 500)) for n in range(200)}
    old, new = (replace(SIDE, requirements={id: pair[n] for id, pair in outcomes.items()}) for n in (0, 1))
    lines = list(comparison_text.markdown(comparison.compare(old, new)))
    assert 50_000 < len("\n".join(lines)) < 65_536
    rows = [line for line in lines if line.startswith("| AA-")]
    assert f"\n… and {200 - len(rows)} more." in lines and "\n… and 200 more." in lines


def test_a_planted_regression_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    failing = document.document(sample_report())
    (entry,) = [candidate for candidate in failing["verdict"]["requirements"] if candidate["id"] == "AA-002"]
    for folder in (old, new):
        folder.mkdir()
    (new / "report.yaml").write_text(document.render(failing), "utf-8")
    entry |= {"outcome": "passed"}
    entry.pop("failures")
    (old / "report.yaml").write_text(document.render(failing), "utf-8")

    assert call("compare", str(old), str(new)) == Exit.REGRESSION
    output = capsys.readouterr().out
    assert "newly failing:\n  AA-002 (MUST, core): Text of AA-002.\n      the names: expected" in output
    assert output.endswith("regression: 1 newly failing (2 requirements judged in both)\n")

    assert call("compare", "--markdown", str(old), str(new)) == Exit.REGRESSION
    assert capsys.readouterr().out.startswith("### ❌ Conformance: regression: 1 newly failing")
    assert call("compare", str(new), str(old)) == Exit.CONFORMANT
    assert "regression: 1 fixed" in capsys.readouterr().out


def test_a_recorded_run_is_compared_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.yaml"
    report.write_text(document.render(document.document(sample_report())), "utf-8")
    record = tmp_path / "runs.yaml"
    run = structs.replace(recorded.read(report)[0], outcomes={"AA-001": Outcome.PASSED, "AA-002": Outcome.PASSED})
    record.write_text(recorded.render([run]), "utf-8")
    assert call("compare", str(record), str(report)) == Exit.REGRESSION

    record.write_text(recorded.render([run, run]), "utf-8")
    assert call("compare", str(record), str(report)) == Exit.USAGE
    assert "has 2 runs" in capsys.readouterr().err


def call(*arguments: str) -> int:
    return cli.run(lambda: cli.app(["report", *arguments], standalone_mode=False))


@pytest.mark.parametrize(
    ("verdicts", "mark", "suffix"),
    [
        (("conformant", "not-conformant"), "✅", "(1 requirement judged in both)"),
        (("harness-error", "conformant"), "⚠️", "(1 requirement judged in both; the old report has no verdict)"),
        (("conformant", "interrupted"), "⚠️", "(1 requirement judged in both; the new report has no verdict)"),
    ],
)
def test_a_report_without_a_verdict_is_named(verdicts: tuple[str, str], mark: str, suffix: str) -> None:
    sides = [replace(SIDE, verdict=verdict, requirements={"BB-001": PASSED}) for verdict in verdicts]
    first = next(comparison_text.markdown(comparison.compare(*sides)))
    assert first == f"### {mark} Conformance: no regression: nothing has changed {suffix}"


def test_nothing_in_a_report_controls_a_terminal_or_a_ci_system() -> None:
    difference = compared(PASSED, replace(FAILED, text="a\x1b[2J\n::error::b"), suites=("1", "2\n::stop-commands::c"))
    text = "\n".join(comparison_text.text(difference))
    assert all(words in text for words in (r"a\x1b[2J", r"\x3a:error::b", r"\x3a:stop-commands::c"))
    assert "\n::" not in text
