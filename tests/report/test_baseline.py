"""Tests of how the failures of a run become expected failures."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from conformance import cli
from conformance.implementation import expectations, loading
from conformance.implementation.fields import ExpectedFailure
from conformance.report import baseline, model
from conformance.report.model import Report
from conformance.suite.outcomes import ledger, ledger_file
from conformance.suite.registry.requirement import Level
from tests.report.test_cases import judged
from tests.report.test_model import DONE, TODAY, begin, check, ended, entry, registry, started

LATER, SOON = datetime.date(2027, 2, 1), datetime.date(2026, 12, 1)
OUTCOME_KINDS = ("passed", "failed", "blocked", "untried", "broken", "unclaimed")


def report_of(*outcomes: str) -> Report:
    return judged(*((outcome, Level.MUST) for outcome in outcomes))


def test_decisive_failures_become_expected_failures() -> None:
    report = judged(*((outcome, level) for level in (Level.MUST, Level.SHOULD) for outcome in OUTCOME_KINDS))
    assert [
        (failure.id, failure.reason, failure.expires) for failure in baseline.expected_failures(report, (), LATER)
    ] == [
        ("AA-002", "since 1970-01-01: Text of AA-002.", LATER),
        ("AA-003", "since 1970-01-01: blocked: it exited with code 3", LATER),
    ]
    assert [failure.reason for failure in baseline.expected_failures(report, (), LATER, "issue 7")] == [
        "issue 7",
        "issue 7",
    ]


def test_a_renewed_list_keeps_entries_that_still_fail_or_were_not_judged() -> None:
    earlier = [
        ExpectedFailure("AA-001", "it passes by now"),
        ExpectedFailure("AA-002", "it still fails", "https://example.com/1", LATER),
        ExpectedFailure("AA-003", "it has expired", expires=datetime.date(1970, 1, 1)),
        ExpectedFailure("AA-004", "it could not be judged", expires=SOON),
        ExpectedFailure("BB-001", "another profile has it", expires=SOON),
    ]
    renewed = baseline.expected_failures(report_of("passed", "failed", "failed", "broken"), earlier, SOON)
    assert renewed == [earlier[1], ExpectedFailure("AA-003", "it has expired", expires=SOON), *earlier[3:]]


def test_unjudged_requirements_are_not_part_of_the_list() -> None:
    report = judged(*((outcome, Level.MUST) for outcome in (*OUTCOME_KINDS, "not run")), ("broken", Level.SHOULD))
    assert baseline.unjudged(report) == ["AA-005", "AA-007"]
    assert baseline.unjudged(report_of("passed", "failed", "blocked", "unclaimed")) == []


def test_with_its_own_baseline_a_run_is_conformant() -> None:
    """The list also contains what the implementation blocked, because a baseline that leaves CI red is of no use."""
    first = report_of("passed", "failed", "blocked")
    assert first.exit == 1
    expected_failures = [
        ledger.ExpectedFailure(e.id, e.reason, "", str(e.expires)) for e in baseline.expected_failures(first, (), LATER)
    ]
    events = [
        *(started("a", "AA-001"), check("a", "AA-001"), ended("a")),
        *(started("b", "AA-002"), check("b", "AA-002", "failed"), ended("b", "failed")),
        *(started("c", "AA-003"), ended("c", "blocked", "it exited", "implementation")),
    ]
    plan = {"a": ("AA-001",), "b": ("AA-002",), "c": ("AA-003",)}
    entries = registry(*(entry(f"AA-00{number}") for number in (1, 2, 3)))

    def judge_again(day: datetime.date) -> Report:
        return model.judge(entries, [begin(plan, expected=expected_failures), *events, DONE], day)

    second = judge_again(TODAY)
    assert (second.verdict, second.exit) == ("conformant-except-expected-failures", 0)
    outcomes = {r.requirement.id: (str(r.outcome), r.reason) for r in second.results}
    assert outcomes["AA-003"] == ("expected-failure", f"{expected_failures[1].reason}; blocked: it exited")
    expired = judge_again(LATER)
    assert [str(r.outcome) for r in expired.results] == ["passed", "stale-expectation", "blocked"]
    assert expired.exit == 1


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["grove-conformance", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        output, err = capsys.readouterr()
        assert int(end.value.code or 0) == code, err
        return output + err

    return call


def test_the_command_writes_and_renews_a_file(call: Callable[..., str], tmp_path: Path) -> None:
    plan = {"t": ("CORE-001",), "u": ("CORE-002",)}
    events = [started("t", "CORE-001"), check("t", "CORE-001", "failed"), ended("t", "failed")]
    events += [started("u", "CORE-002"), check("u", "CORE-002"), ended("u"), DONE]
    run = msgspec.structs.replace(begin(plan), ids=("CORE-001", "CORE-002"))
    ledger_file.save(tmp_path / "run" / "ledger", [run, *events])
    printed = call("report", "baseline", "run", "--expires", "2030-01-31")
    assert "implementation: mine\n" in printed and "- id: CORE-001\n" in printed and "2030-01-31" in printed
    edited = printed.replace("CORE-001", "CORE-002").replace("- id: CORE-002\n", "- id: CORE-002\n  link: l\n")
    (tmp_path / "ci.yaml").write_text(edited)
    assert call("report", "baseline", "run", "--to", "ci.yaml") == "ci.yaml: 1 expected failures of mine\n"
    (entry,) = expectations.read(tmp_path / "ci.yaml")[1].expected_failures
    assert entry.id == "CORE-001" and entry.expires is not None and entry.expires > datetime.date.today()
    assert "run: no such folder" not in call("report", "baseline", "run", "--to", "no/ci.yaml")
    assert "'soon' is not a date" in call("report", "baseline", "run", "--expires", "soon", code=4)
    assert "2020-01-31 is not in the future" in call("report", "baseline", "run", "--expires", "2020-01-31", code=4)
    ledger_file.save(tmp_path / "cut" / "ledger", [run, *events[:3]])
    assert "not judged in this run, and not added: CORE-002 — renew" in call("report", "baseline", "cut")
    assert 'did you mean "run"?' in call("report", "baseline", "rum", code=4)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name", "name", ""),
        ("CORE-001", "CORE-999", "ci.yaml:5: expectedFailures[0].id: unknown requirement 'CORE-999'"),
        ("reference", "other", "--baseline ci.yaml: has the failures of other, not of reference"),
        ("reason", "resaon", "ci.yaml:6: expectedFailures[0].resaon: unknown field — did you mean"),
    ],
)
def test_a_mistake_in_a_baseline_is_one_line(
    call: Callable[..., str], tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = expectations.text("reference", [ExpectedFailure("CORE-001", "known", expires=LATER)])
    (tmp_path / "ci.yaml").write_text(text.replace(old, new))
    if not words:
        implementation = loading.load("reference")
        document, expected = expectations.read(Path("ci.yaml"))
        judged_again = expectations.with_baseline(implementation, expected, document.path)
        assert judged_again.expected_failures[-1].expires == LATER
        return
    output = call("run", "--baseline", "ci.yaml", code=4)
    assert words in output and len(output.splitlines()) == 1
