"""Tests of the output for people: progress, tables, failures and the verdict line."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from rich.console import Console
from test_document import EVENTS, REGISTRY, sample_report
from test_model import DONE, TODAY, begin, check, ended, entry, limited, registry, started

from conformance.report import document, model, terminal
from conformance.report.progress import Progress
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.registry import quick, requirement
from conformance.suite.registry.basis import BasisKind
from conformance.suite.registry.requirement import Level


def printed(events: list[ledger.AnyEvent], *, verbose: bool = True, **console_options: object) -> str:
    output = StringIO()
    console = Console(file=output, width=100, highlight=False, **console_options)  # type: ignore[arg-type]
    report = model.judge(REGISTRY, events, date(2026, 11, 21))
    terminal.show(report, Path("reports/r1/report.yaml"), console, verbose=verbose)
    return output.getvalue()


def test_without_a_terminal_there_are_plain_lines() -> None:
    text = printed(EVENTS)
    assert "  ✗ AA-002     MUST   failed            Text of AA-002.\n" in text
    assert "│" not in text and "\x1b" not in text


def test_no_color_is_plain_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = printed(EVENTS, force_terminal=True)
    assert "│" not in text


def test_a_terminal_gets_a_table_that_fits() -> None:
    text = printed(EVENTS, force_terminal=True, color_system=None)
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert len(rows) == 2 and all(len(row) <= 100 for row in rows)
    assert "AA-002" in rows[1] and "failed" in rows[1]


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "color_system": None}])
def test_unselected_requirements_are_counted_in_one_line(options: dict[str, object]) -> None:
    run_started = msgspec.structs.replace(EVENTS[0], ids=("AA-002",))
    text = printed([run_started, *EVENTS[1:]], **options)
    assert "AA-002" in text and "AA-001" not in text
    assert text.count("and 1 that were not selected") == 1
    assert "selected" not in printed(EVENTS, **options)


def test_a_failure_has_all_details() -> None:
    text = printed(EVENTS)
    block = text[text.index("1 cause of failures: 1 requirement failed") :]
    for words in (
        "1. AA-002 is violated\n",
        "see also:   upstream's defect CHG-DF12: Headless Services of replicas that a scale-in",
        "✗ AA-002 Text of AA-002.",
        "test:       t.py::test_one",
        'expected:   [\n                  "ä",',
        r"seen:       \x1b[31mline one",
        "at:         1.250 s of the history, services/one (revision 12)",
        "evidence:   reports/r1/bundles/one",
        "--test t.py::test_one",
        "the role gang-scheduler was supplied by reference 0.1.0 and was not judged",
        "mine 1 is NOT conformant (core: 1 failed, 1 passed)",
        "report: reports/r1/report.yaml",
    ):
        assert words in block, words


def test_a_quick_run_makes_no_statement_about_conformance() -> None:
    registry = replace(REGISTRY, requirements={id: entry(id) for id in ("A-001", "A-002")})

    def line(tests: tuple[str, ...], outcome: Any = "passed") -> str:
        events = [
            msgspec.structs.replace(begin({"t": ("A-001",)}), ids=("A-001",), only=tests),
            started("t", "A-001"),
            check("t", "A-001", outcome),
            ended("t", outcome),
            DONE,
        ]
        return terminal.verdict_line(model.judge(registry, events, TODAY))

    assert "mine 1 passed the few tests of --quick, which say nothing of conformance (partial)" in line((*quick.TESTS,))
    assert "passed all that was selected (partial)" in line(("t",))
    assert "mine 1 is NOT conformant" in line((*quick.TESTS,), "failed")


def test_compatibility_is_reported_next_to_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    for id in ("AA-001", "AA-002"):
        compatible = structs.replace(REGISTRY.requirements[id], level=Level.COMPAT)
        monkeypatch.setitem(REGISTRY.requirements, id, compatible)  # type: ignore[arg-type]
    assert "; compatible with upstream: 1 of 2 (core" in terminal.verdict_line(sample_report())


def test_a_failure_quotes_the_document_that_its_requirement_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    quoted = structs.replace(
        REGISTRY.requirements["AA-002"], basis=BasisKind.DOCUMENT, quotes=requirement.load().get("GANG-002").quotes
    )
    monkeypatch.setitem(REGISTRY.requirements, "AA-002", quoted)  # type: ignore[arg-type]
    text = StringIO()
    terminal.show(sample_report(), Path("reports/r1/report.yaml"), Console(file=text, width=100, highlight=False))
    assert "says so:    Types of PodGang, comments, PodGroup.PodReferences: “PodReferences is a list" in text.getvalue()


def test_a_failure_quotes_the_document_that_contradicts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    contested = structs.replace(
        REGISTRY.requirements["AA-002"], contradicts=requirement.load().get("TMPL-016").contradicts
    )
    monkeypatch.setitem(REGISTRY.requirements, "AA-002", contested)  # type: ignore[arg-type]
    text = " ".join(printed(EVENTS).split())
    assert "but: another document says otherwise: Pull request 566: stable hashes, review comment on" in text
    assert "“I am not sure if updating the PodCliqueTemplateSpec labels" in text


def test_a_failure_states_that_its_requirement_rests_on_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded = structs.replace(REGISTRY.requirements["AA-002"], seed="pull request 1, reverted by 2")
    monkeypatch.setitem(REGISTRY.requirements, "AA-002", seeded)  # type: ignore[arg-type]
    text = " ".join(printed(EVENTS).split())
    sentence = "(rests on pull request 1, reverted by 2, and not on upstream's contract: does not decide the verdict)"
    assert f"Text of AA-002. {sentence}" in text


def test_requirements_of_seed_documents_are_counted_next_to_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "seed documents" not in terminal.verdict_line(sample_report())
    for id in ("AA-001", "AA-002"):
        monkeypatch.setitem(REGISTRY.requirements, id, structs.replace(REGISTRY.requirements[id], seed="GREP-1"))  # type: ignore[arg-type]
    assert "; and 1 of 2 that the seed documents ask for (core" in terminal.verdict_line(sample_report())


def test_related_failures_are_described_and_values_are_one_line() -> None:
    both = [
        msgspec.structs.replace(e, outcome="failed", what="the names", expected={"a": [1, 2]}, seen={"a": [1, 3]})
        if isinstance(e, ledger.Check)
        else e
        for e in EVENTS
    ]
    lines = printed(both, verbose=False).splitlines()
    assert "1 cause of failures: 2 requirements failed" in lines
    assert "    failed too: AA-002 AA-002 is violated" in lines
    assert '    expected:   {"a":[1,2]}' in lines and '    seen:       {"a":[1,3]}' in lines


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (("operator",), "judged: the operator alone"),
        (("gang-scheduler",), "judged: the gang scheduler alone"),
        (("gang-scheduler", "operator"), "judged: operator and gang scheduler together"),
    ],
)
def test_the_output_names_the_judged_roles(roles: tuple[str, ...], words: str) -> None:
    implementation = msgspec.structs.replace(EVENTS[0].implementation, roles=roles)  # type: ignore[union-attr]
    text = printed([msgspec.structs.replace(EVENTS[0], implementation=implementation), *EVENTS[1:]])
    assert f"\n{words}\n" in text


def test_a_failure_with_a_picture_has_its_path(tmp_path: Path) -> None:
    (tmp_path / "bundles" / "one").mkdir(parents=True)
    (tmp_path / "bundles" / "one" / "timeline.svg").write_text("<svg/>")
    output = StringIO()
    report = model.judge(REGISTRY, EVENTS, date(2026, 11, 21))
    terminal.show(report, tmp_path / "report.yaml", Console(file=output, width=200, highlight=False))
    assert f"picture:    {tmp_path}/bundles/one/timeline.svg" in output.getvalue()


def test_reasons_that_are_not_shown_are_counted_with_their_place() -> None:
    ids = [f"AA-{number:03}" for number in range(6)]
    plan: dict[str, tuple[str, ...]] = {id.lower(): (id,) for id in ids}
    ends = [ended(test, "blocked", f"why {test}", "implementation") for test in plan]
    report = model.judge(registry(*map(entry, ids)), [begin(plan), *ends, DONE], TODAY)
    output = StringIO()
    terminal.show(report, Path("reports/r1/report.yaml"), Console(file=output, width=200, highlight=False))
    assert "and 1 more reason why something was not judged: see reports/r1/report.txt\n" in output.getvalue()


def test_requirements_blocked_by_an_expected_failure_are_reported() -> None:
    implementation = msgspec.structs.replace(
        EVENTS[0].implementation,  # type: ignore[union-attr]
        expected_failures=(ledger.ExpectedFailure("AA-002"),),
    )
    reason = "AA-002 failed (the names)"
    events = [
        msgspec.structs.replace(e, ended_by=reason) if isinstance(e, ledger.TestFinished) else e for e in EVENTS[1:]
    ]
    for verbose in (True, False):
        text = printed([msgspec.structs.replace(EVENTS[0], implementation=implementation), *events], verbose=verbose)
        assert f"blocked: not judged to its end: t.py::test_one ended when {reason} (AA-001)" in text
        assert "causes of failures" not in text


def test_the_same_failure_of_two_requirements_is_reported_once() -> None:
    both = [
        msgspec.structs.replace(e, outcome="failed", what="made", expected=1, seen="refused")
        if isinstance(e, ledger.Check)
        else e
        for e in EVENTS
    ]
    text = printed(both)
    assert text.count("refused") == 1
    assert text.count("--test t.py::test_one") == 1


def large(outcome: str, tests: int) -> model.Report:
    """Return the report of a run of 15 profiles with 22 requirements each. The first `tests` tests end with this
    outcome, each with one of 20 long texts."""
    entries = {f"P{chr(65 + profile)}-{number:03d}": f"p{profile}" for profile in range(15) for number in range(1, 23)}
    registry = requirement.Registry(
        {f"p{profile}": "A profile." for profile in range(15)},
        {id: entry(id, profile=profile) for id, profile in entries.items()},
        {},
    )
    plan = {f"t.py::test_{number}": ids for number, ids in enumerate(zip(*[iter(sorted(entries))] * 2, strict=True))}
    events: list[ledger.AnyEvent] = [begin(plan)]
    for number, (test, ids) in enumerate(plan.items()):
        result = outcome if number < tests else "passed"
        actual = "not seen\nnearest: " + "x" * (number % 20 + 1) + "\nlast state:\n" + "  a line\n" * 40
        events += [started(test, *ids), check(test, ids[0])]
        events += [ledger.Check(wall=3.0, test=test, id=ids[1], what="w", outcome=result, expected="w", seen=actual)]  # type: ignore[arg-type]
        events += [ended(test, result)]
    return model.judge(registry, [*events, DONE], TODAY)


@pytest.mark.parametrize("report", [large("passed", 0), large("failed", 100)])
def test_a_summary_fits_a_page_and_verbose_shows_every_requirement(report: model.Report) -> None:
    page, verbose_output = StringIO(), StringIO()
    for output, verbose in ((page, False), (verbose_output, True)):
        console = Console(file=output, width=100, highlight=False)
        terminal.show(report, Path("reports/r1/report.yaml"), console, verbose=verbose)
    assert len(page.getvalue().splitlines()) <= 60
    assert ("… 41 more lines in the report" in page.getvalue()) is bool(report.counts[model.Outcome.FAILED])
    assert "report: reports/r1/report.yaml" in page.getvalue().splitlines()[-1]
    assert sum(line.startswith(("  ✓", "  ✗")) for line in verbose_output.getvalue().splitlines()) == 330


def progress(tmp_path: Path, *events: ledger.AnyEvent, **options: Any) -> str:
    """Return what is printed for these events without a terminal."""
    output = StringIO()
    with (
        RunLedger(tmp_path) as run_ledger,
        Progress(run_ledger, 9, Console(file=output, width=200, highlight=False), 0.0, **options),
    ):
        for event in events:
            run_ledger.write(event)
    return output.getvalue()


PHASE = ledger.Phase(worker="gw0", phase="bringing the cluster up")
PLAYED = ledger.ScenePlayed(scene="t.py::Scene", worker="gw0", seconds=2.0, steps={})


def test_a_run_in_which_all_is_well_prints_nothing(tmp_path: Path) -> None:
    """In the log of a CI job, two lines per test would hide the only line that matters."""
    events = (PHASE, started("u", "AA-001"), PLAYED, check("u", "AA-001", "passed"), ended("u", "passed"))
    assert progress(tmp_path, *events) == ""
    assert len(progress(tmp_path, *events, verbose=True).splitlines()) == 4


def test_progress_is_printed_occasionally_without_a_terminal(tmp_path: Path) -> None:
    output = StringIO()
    with RunLedger(tmp_path) as run_ledger, Progress(run_ledger, 9, Console(file=output, width=200), 0.0, interval=0.0):
        run_ledger.write(PHASE)
        deadline = time.monotonic() + 30
        while "0 of 9 tests, 0 failed  gw0: bringing the cluster up\n" not in output.getvalue():
            assert time.monotonic() < deadline, output.getvalue()
        for event in (started("t", "AA-002"), check("t", "AA-002", "failed"), ended("t", "failed")):
            run_ledger.write(event)
        while "1 of 9 tests, 1 failed\n" not in output.getvalue():
            assert time.monotonic() < deadline, output.getvalue()


def test_an_expected_failure_is_not_a_failure_while_its_scene_runs(tmp_path: Path) -> None:
    events = (started("u", "AA-002"), check("u", "AA-002", "unknown"), check("u", "AA-002", "failed"))
    text = progress(tmp_path, *events, ended("u", "failed"), expected={"AA-002"})
    assert text.count("~ AA-002 w, as expected (u)") == len(text.splitlines()) == 1
    assert "✗" not in text and "expected:" not in text


def test_two_of_many_failed_checks_of_a_requirement_are_printed(tmp_path: Path) -> None:
    checks = [
        msgspec.structs.replace(check("u", "AA-002", outcome, f"{outcome} pods of {number}"), seen=number)
        for outcome in ("failed", "unknown")
        for number in range(5)
    ]
    events = (started("u", "AA-002"), *checks, check("u", "AA-003", "failed"), ended("u", "failed"))
    text = progress(tmp_path, *events)
    assert text.count("✗ AA-002") == text.count("▪ AA-002") == 2 and "✗ AA-003" in text
    assert "3 more failed checks of AA-002 (u)" in text and "3 more unjudged checks of AA-002 (u)" in text
    assert "of AA-003" not in text
    assert progress(tmp_path / "verbose", *events, verbose=True).count(" AA-002 ") == 10


def test_a_check_is_compared_with_a_printed_one_only(tmp_path: Path) -> None:
    values = [("AA-002", 1), ("AA-002", 2), ("AA-002", 3), ("AA-003", 3)]
    checks = [msgspec.structs.replace(check("u", id, "failed"), seen=value) for id, value in values]
    assert "as AA-002" not in progress(tmp_path, started("u", "AA-002", "AA-003"), *checks)


def test_the_violation_of_an_invariant_is_printed_in_full_once(tmp_path: Path) -> None:
    broken = [
        msgspec.structs.replace(
            check(test, "INV-001", "failed"), expected="holds at every moment", seen="INV-001 broken: w — pod a"
        )
        for test in ("t", "u", "v")
    ]
    text = progress(tmp_path, *broken)
    assert text.count("✗ INV-001 w") == 3 and text.count("pod a") == 1


def test_why_tests_are_blocked_is_reported_once(tmp_path: Path) -> None:
    ends = [msgspec.structs.replace(ended(test, "blocked"), reason="it does not start") for test in ("t", "u", "v")]
    text = progress(tmp_path, *ends)
    assert len(text.splitlines()) == 1 and "▪ blocked: it does not start (t)" in text


def test_progress_reports_phases_and_ends_of_tests(tmp_path: Path) -> None:
    output = StringIO()
    console = Console(file=output, width=200, highlight=False)
    with RunLedger(tmp_path) as run_ledger, Progress(run_ledger, 1, console, 0.0, verbose=True):
        run_ledger.write(ledger.Phase(worker="gw0", phase="bringing the cluster up"))
        for event in EVENTS[1:-1]:
            run_ledger.write(event)
        run_ledger.write(ledger.HarnessFault(worker="gw0", what="etcd \x1b[2J died"))
    text = output.getvalue()
    assert "gw0: bringing the cluster up" in text
    assert "1/1 failed t.py::test_one (AA-002) 1.8 s" in text
    failure = text.index("✗ AA-002 the names (t.py::test_one)")
    assert failure < text.index('expected: ["ä","b"]') < text.index(r"seen:     \x1b[31mline one")
    assert text.index(r"seen:     \x1b[31mline one") < text.index("1/1 failed")
    assert r"gw0: harness error: etcd \x1b[2J died" in text


def test_a_known_limit_is_explained_and_is_not_a_cause_of_failures() -> None:
    text = StringIO()
    terminal.show(limited("failed"), Path("reports/r1/report.yaml"), Console(file=text, width=100, highlight=False))
    lines = text.getvalue()
    assert "known limits, which the specification accepts (nobody's failure):" in lines
    assert "≈ KEP-L02: minimums before extras are not promised (AA-002)" in lines
    assert "cause" not in lines and "is conformant (core: 1 known-limit, 1 passed)" in lines


def test_a_known_limit_is_reported_while_its_scene_runs(tmp_path: Path) -> None:
    output = StringIO()
    console = Console(file=output, width=200)
    with (
        RunLedger(tmp_path) as run_ledger,
        Progress(run_ledger, 1, console, 0.0, known_limits={"AA-002"}, verbose=True),
    ):
        for event in (started("u", "AA-002"), check("u", "AA-002", "failed"), ended("u", "known-limit")):
            run_ledger.write(event)
    assert "≈ AA-002 w (u)" in output.getvalue() and "1/1 known-limit u" in output.getvalue()


def test_an_invariant_is_reported_with_the_number_of_other_tests() -> None:
    run_started = msgspec.structs.replace(EVENTS[0], profiles=("core",), elsewhere={"AA-001": 3})
    sentence = (
        "invariants were judged in scenes of the selected profiles: AA-001 in 1 of 4 tests (--with-invariants for all)"
    )
    assert sentence in printed([run_started, *EVENTS[1:]]) and sentence not in printed(EVENTS)
    report = document.document(model.judge(REGISTRY, [run_started, *EVENTS[1:]], date(2026, 11, 21)))
    document.validate(report)
    assert [entry.get("elsewhere") for entry in report["verdict"]["requirements"]] == [3, None]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("::set-output name=exit-code::0", r"\x3a:set-output name=exit-code::0"),
        ("seen:\n   ::stop-commands::a", "seen:\n   \\x3a:stop-commands::a"),
        (
            "seen: ##[error]a ##vso[task.complete]b ##teamcity[c",
            r"seen: \x23#[error]a \x23#vso[task.complete]b \x23#teamcity[c",
        ),
        ("a\n```\n# heading", "a\n\\x60``\n# heading"),
        ("\x1b[31m::a", r"\x1b[31m::a"),
        ("a::b, ## [c] and `d`", "a::b, ## [c] and `d`"),
    ],
)
def test_printed_lines_are_not_commands_for_a_ci_system(text: str, printed: str) -> None:
    assert terminal.clean(text) == printed
