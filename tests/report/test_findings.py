"""Tests of the pages of findings and the recorded runs: what counts as a finding, and what `findings check` reports."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import msgspec
import pytest
from msgspec import structs
from test_document import EVENTS, REGISTRY

from conformance import cli
from conformance.errors import UsageError
from conformance.report import document, findings, model, recorded
from conformance.report.model import Outcome
from conformance.report.recorded import Run
from conformance.suite.outcomes import ledger
from conformance.suite.registry.requirement import Registry

PAGE = """# Findings

## AA-001 (SHOULD), AA-002: it does not

Text.

```console
## AA-009: not a heading
```

### A part

More.

## Other words: no finding
"""
RUN = Run("sha256:" + "0" * 64, "mine", "1", (), "2026-11-24T10:00:00Z", "0.1.0 (sha256:s)", {}, outcomes={})


def run(**outcomes: Outcome) -> Run:
    return structs.replace(RUN, outcomes={id.replace("_", "-"): outcome for id, outcome in outcomes.items()})


def problems_of(text: str, *runs: Run, registry: Registry = REGISTRY) -> list[str]:
    return findings.problems(list(findings.sections(Path("p.md"), text)), runs, registry)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("CORE-014", ["CORE-014"]),
        ("CORE-014 (SHOULD), TERM-001", ["CORE-014", "TERM-001"]),
        ("CORE-014 to 016, 018, TERM-001", ["CORE-014", "CORE-015", "CORE-016", "CORE-018", "TERM-001"]),
        ("to 3", []),
    ],
)
def test_a_text_names_requirements(text: str, named: list[str]) -> None:
    assert list(findings.ids(text)) == named


def test_a_finding_is_a_section_whose_heading_begins_with_requirements() -> None:
    (section,) = findings.sections(Path("p.md"), PAGE)
    assert (section.ids, section.title, section.line) == (("AA-001", "AA-002"), "it does not", 3)
    assert section.anchor == "aa-001-should-aa-002-it-does-not"
    assert "More." in section.body and "Other words" not in section.body


def test_findings_that_fail_and_failures_with_findings_are_fine() -> None:
    failed = run(AA_001=Outcome.FAILED, AA_002=Outcome.EXPECTED_FAILURE)
    assert problems_of(PAGE, failed) == []
    assert problems_of(PAGE, run(AA_001=Outcome.FAILED), run(AA_002=Outcome.FAILED, AA_001=Outcome.PASSED)) == []


def test_a_finding_that_no_longer_fails_is_reported() -> None:
    assert problems_of(PAGE, run(AA_001=Outcome.FAILED, AA_002=Outcome.PASSED)) == [
        "p.md:3: AA-002 did not fail: passed"
    ]
    assert problems_of(PAGE, run(AA_001=Outcome.FAILED)) == ["p.md:3: AA-002 did not fail: no run judged it"]


def test_requirements_that_do_not_fail_in_every_run_may_pass() -> None:
    text = PAGE.replace("Text.", "**Not in every run:** AA-002.")
    assert problems_of(text, run(AA_001=Outcome.FAILED, AA_002=Outcome.PASSED)) == []


def test_a_failure_without_a_finding_and_an_unknown_requirement_are_reported() -> None:
    text = "## AA-003: it does not\n"
    assert problems_of(text, run(AA_001=Outcome.FAILED)) == [
        'p.md:1: AA-003 is not a requirement; did you mean "AA-002"?',
        "AA-001 (MUST) failed in the run of mine 1, 2026-11-24, and no finding names it",
    ]


def test_a_finding_states_that_its_requirement_rests_on_a_seed() -> None:
    seeded = structs.replace(REGISTRY.requirements["AA-001"], seed="pull request 1")
    registry = replace(REGISTRY, requirements={**REGISTRY.requirements, "AA-001": seeded})
    failed = run(AA_001=Outcome.FAILED, AA_002=Outcome.FAILED)
    assert problems_of(PAGE, failed, registry=registry) == [
        "p.md:3: AA-001 rests on a seed (pull request 1), and no paragraph says so (**Seed.**)"
    ]
    assert problems_of(PAGE.replace("Text.", "**Seed.** Pull request 1."), failed, registry=registry) == []


def test_a_report_is_recorded_and_read_again(tmp_path: Path) -> None:
    report, record_file = tmp_path / "report.yaml", tmp_path / "kept.yaml"
    document.write(report, model.judge(REGISTRY, EVENTS, date(2026, 11, 21)))
    (record,) = recorded.read(report)
    assert (record.label, record.failed) == ("mine 1, 2026-11-21", {"AA-002"})
    assert record.outcomes == {"AA-001": Outcome.PASSED, "AA-002": Outcome.FAILED}
    record_file.write_text(recorded.render([record]), "utf-8")
    assert recorded.read(record_file) == [record]


def test_a_violated_invariant_is_recorded_in_addition_to_the_selected_requirements(tmp_path: Path) -> None:
    head, *tail = EVENTS
    assert isinstance(head, ledger.RunStarted)
    invariant = structs.replace(REGISTRY.requirements["AA-002"], id="INV-002")
    registry = replace(REGISTRY, requirements={**REGISTRY.requirements, invariant.id: invariant})
    violation = ledger.Check(wall=1_795_262_960.7, test="t.py::test_one", id=invariant.id, what="x", outcome="failed")
    events = [msgspec.structs.replace(head, ids=("AA-001",)), *tail, violation]
    report, record_file = tmp_path / "report.yaml", tmp_path / "kept.yaml"
    document.write(report, model.judge(registry, events, date(2026, 11, 21)))
    record_file.write_text(recorded.render(recorded.read(report)), "utf-8")
    [run_of_one_id] = recorded.read(record_file)
    assert run_of_one_id.outcomes == {"AA-001": Outcome.PASSED, "INV-002": Outcome.FAILED}


def test_a_failure_that_was_an_error_of_the_suite_can_be_withdrawn(tmp_path: Path) -> None:
    record_file = tmp_path / "kept.yaml"
    record_file.write_text(recorded.render([run(AA_001=Outcome.FAILED, AA_002=Outcome.FAILED)]), "utf-8")
    record_file.write_text(
        record_file.read_text("utf-8") + "  withdrawn: {AA-002: it compared two other objects}\n", "utf-8"
    )
    (record,) = recorded.read(record_file)
    assert (record.outcomes, record.withdrawn) == (
        {"AA-001": Outcome.FAILED},
        {"AA-002": "it compared two other objects"},
    )
    record_file.write_text(recorded.render([record]), "utf-8")
    assert recorded.read(record_file) == [record]


def test_files_that_are_neither_a_report_nor_recorded_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("kind: Other\n")
    with pytest.raises(UsageError, match=r"x.yaml:1: kind"):
        recorded.read(path)
    path.write_text("kind: ConformanceReport\n")
    with pytest.raises(UsageError, match=r"x.yaml: the report breaks its own schema"):
        recorded.read(path)


def run_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["grove-conformance", "findings", *argv])
    with pytest.raises(SystemExit) as end:
        cli.main()
    output, err = capsys.readouterr()
    return int(str(end.value.code)), output + err


def test_the_command_reports_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report, page, record_file = tmp_path / "report.yaml", tmp_path / "p.md", tmp_path / "kept.yaml"
    document.write(report, model.judge(REGISTRY, EVENTS, date(2026, 11, 21)))
    assert run_command(monkeypatch, capsys, "record", str(report), "--to", str(record_file)) == (0, f"{record_file}\n")
    page.write_text("## CORE-026: it does not\n")
    code, text = run_command(monkeypatch, capsys, "check", str(record_file), "--pages", str(tmp_path))
    assert code == 1
    assert "p.md:1: CORE-026 did not fail: no run judged it\n" in text
    assert "AA-002 (unknown) failed in the run of mine 1, 2026-11-21, and no finding names it\n" in text
    assert run_command(monkeypatch, capsys, "check", str(record_file), "--pages", str(tmp_path / "none"))[0] == 4
