"""Tests that JUnit and Allure agree with the verdict, for ledgers with each outcome on each level."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from conformance.errors import Exit, HarnessError
from conformance.report import allure, cases, junit, model, page, terminal
from conformance.report.cases import CaseState
from conformance.report.model import Outcome, Report
from conformance.suite.outcomes import ledger
from conformance.suite.registry.requirement import Level, Limit, Registry
from tests import requirements
from tests.report.test_model import DONE, TODAY, begin, check, ended, entry, registry, started

ID = "AA-{:03}"
EXPECTED = {
    "expected": ledger.ExpectedFailure("", "known since May"),
    "stale": ledger.ExpectedFailure("", "known since May"),
    "expired": ledger.ExpectedFailure("", "known since May", expires="2020-01-01"),
}


def passed(test: str, id: str) -> list[ledger.AnyEvent]:
    return [started(test, id), check(test, id), ended(test)]


def failed(test: str, id: str) -> list[ledger.AnyEvent]:
    return [started(test, id), check(test, id, "failed"), ended(test, "failed")]


def blocked(test: str, id: str) -> list[ledger.AnyEvent]:
    return [started(test, id), ended(test, "blocked", "it exited with code 3", "implementation")]


def untried(test: str, id: str) -> list[ledger.AnyEvent]:
    return [started(test, id), ended(test, "blocked", "this run cannot kill it", "circumstances")]


def broken(test: str, id: str) -> list[ledger.AnyEvent]:
    fault = ledger.HarnessFault(wall=3.5, worker="gw0", what="etcd died", test=test)
    return [started(test, id), fault, ended(test, "harness-error", "etcd died")]


def silent(test: str, id: str) -> list[ledger.AnyEvent]:
    return [started(test, id), ended(test)]


def missing(test: str, id: str) -> list[ledger.AnyEvent]:
    return []


OUTCOME_KINDS: dict[str, Callable[[str, str], list[ledger.AnyEvent]]] = {
    "passed": passed,
    "failed": failed,
    "expected": failed,
    "expired": failed,
    "stale": passed,
    "limit": failed,
    "blocked": blocked,
    "untried": untried,
    "broken": broken,
    "silent": silent,
    "unclaimed": missing,
    "not run": missing,
}
LEVELS = (Level.MUST, Level.SHOULD)


def judged(
    *outcomes: tuple[str, Level], end: Sequence[ledger.AnyEvent] = (DONE,), ids: tuple[str, ...] = (), seed: str = ""
) -> Report:
    """Judge a run that has a requirement with its own test for each outcome. `ids` are selected; the first requirement
    rests on `seed`."""
    entries, events, expected, plan = [], [], [], {}
    for number, (outcome, level) in enumerate(outcomes, 1):
        id, test = ID.format(number), f"t.py::test_{number}"
        item = entry(id, level=level, role="gang-scheduler" if outcome == "unclaimed" else "operator")
        item = msgspec.structs.replace(item, seed=seed if number == 1 else "")
        entries.append(msgspec.structs.replace(item, limit=Limit("X-1", "accepted") if outcome == "limit" else None))
        events += OUTCOME_KINDS[outcome](test, id)
        plan[test] = (id,)
        if outcome in EXPECTED:
            expected.append(msgspec.structs.replace(EXPECTED[outcome], id=id))
    run = msgspec.structs.replace(begin(plan, expected=expected), ids=ids)
    return model.judge(registry(*entries), [run, *events, *end], TODAY)


INTERRUPTED = ledger.RunFinished(wall=9.0, interrupted=True, status=2)
ALL_OUTCOMES = [(outcome, level) for outcome in OUTCOME_KINDS for level in LEVELS]
RUNS = [
    *([one] for one in ALL_OUTCOMES),
    *(list(pair) for pair in itertools.combinations(ALL_OUTCOMES, 2)),
    [("passed", Level.MUST), *ALL_OUTCOMES],
]


@functools.cache
def reports() -> list[Report]:
    result = [judged(*outcomes, end=end) for outcomes in RUNS for end in ((DONE,), (INTERRUPTED,))]
    result += [judged(*outcomes, ids=(ID.format(1),)) for outcomes in RUNS]
    result += [judged(*outcomes, seed="GREP-1") for outcomes in RUNS]
    clearing = ledger.HarnessFault(wall=8.0, worker="gw0", what="process 7 does not end", clearing=True)
    return result + [judged(*outcomes, end=(clearing, DONE)) for outcomes in RUNS]


def test_the_ledgers_have_every_outcome_and_every_exit_code() -> None:
    assert {outcome for report in reports() for outcome, count in report.counts.items() if count} == set(Outcome)
    assert {report.exit for report in reports()} == set(model.EXIT_CODES.values())


def test_a_case_is_red_exactly_if_the_run_does_not_succeed() -> None:
    for report in reports():
        states = {case.state for case in cases.find_cases(report)}
        assert bool(states & cases.RED_STATES) == (report.exit is not Exit.CONFORMANT), (report.counts, report.exit)


def test_junit_counts_the_decisive_results() -> None:
    for report in reports():
        root = ET.fromstring(junit.render(report))
        for profile in report.profiles:
            selected_results = [result for result in profile.results if result.reason != model.NOT_SELECTED]
            deciding = [r for r in selected_results if r.requirement.decides or report.verdict == "partial"]
            suite = root.find(f"testsuite[@name='{profile.name}']")
            if suite is None:
                assert not selected_results
                continue
            assert int(suite.get("tests", "")) == len(selected_results) == len(suite.findall("testcase"))
            outcomes, must = Counter(r.outcome for r in selected_results), Counter(r.outcome for r in deciding)
            broken = outcomes[Outcome.HARNESS_ERROR] if report.exit is not Exit.CONFORMANT else 0
            assert int(suite.get("failures", "")) == must[Outcome.FAILED] + outcomes[Outcome.STALE_EXPECTATION]
            assert int(suite.get("errors", "")) == broken
            red = int(suite.get("failures", "")) + int(suite.get("errors", ""))
            assert int(suite.get("skipped", "")) == len(selected_results) - outcomes[Outcome.PASSED] - red
        for total in ("tests", "failures", "errors", "skipped"):
            assert int(root.get(total, "")) == sum(int(suite.get(total, "")) for suite in root)


def test_allure_has_the_states_of_junit(tmp_path: Path) -> None:
    names = {"failure": "failed", "error": "broken", "skipped": "skipped"}
    for number, report in enumerate(reports()[-30:]):
        cases_ = ET.fromstring(junit.render(report)).iter("testcase")
        states = Counter(next((names[part.tag] for part in case if part.tag in names), "passed") for case in cases_)
        allure.write(tmp_path / str(number), report)
        results = [json.loads(path.read_text()) for path in (tmp_path / str(number)).glob("*-result.json")]
        assert Counter(result["status"] for result in results) == states


def only(report: Report) -> cases.ReportCase:
    return cases.find_cases(report)[0]


@pytest.mark.parametrize(
    ("outcome", "level", "state", "message"),
    [
        ("passed", Level.MUST, CaseState.PASSED, ""),
        ("failed", Level.MUST, CaseState.FAILED, "w: expected 1, seen 2"),
        ("failed", Level.SHOULD, CaseState.SKIPPED, "failed, but a SHOULD does not decide: w: expected 1, seen 2"),
        ("expected", Level.MUST, CaseState.SKIPPED, "expected failure: known since May: w: expected 1, seen 2"),
        ("limit", Level.MUST, CaseState.SKIPPED, "known limit: X-1: accepted: w: expected 1, seen 2"),
        ("stale", Level.MUST, CaseState.FAILED, "stale expectation: passes although it is expected to fail"),
        ("blocked", Level.MUST, CaseState.SKIPPED, "blocked: it exited with code 3"),
        ("unclaimed", Level.MUST, CaseState.SKIPPED, "not claimed: doesn't play the role gang-scheduler"),
        ("broken", Level.MUST, CaseState.ERROR, "harness error: etcd died"),
    ],
)
def test_a_case_has_the_reason_why_it_did_not_pass(outcome: str, level: Level, state: CaseState, message: str) -> None:
    case = only(judged((outcome, level), ("passed", Level.MUST)))
    assert (case.state, case.message) == (state, message)


def test_a_must_of_a_seed_document_that_fails_is_skipped() -> None:
    case = only(judged(("failed", Level.MUST), ("passed", Level.MUST), seed="GREP-1"))
    message = "failed, but a MUST of a seed document does not decide: w: expected 1, seen 2"
    assert (case.state, case.message) == (CaseState.SKIPPED, message)


def test_a_run_in_which_everything_is_blocked_is_red_by_its_verdict() -> None:
    report = judged(("blocked", Level.MUST), ("blocked", Level.MUST))
    root = ET.fromstring(junit.render(report))
    assert (root.get("failures"), root.get("skipped")) == ("1", "2")
    case = root.find("testsuite[@name='run']/testcase[@name='verdict']/failure")
    assert case is not None and "mine 1 is NOT conformant" in case.get("message", "")


SCENE = "core/test_deletion.py::Deleted[2 of 3]"


def real(**changes: object) -> Report:
    """Return the report of a run with one failure that has everything that a failure can have."""
    at = ledger.Deviation("pods/a-0", 12)
    wrong = ledger.Check(
        wall=3.0,
        test="t",
        id="AA-001",
        what="w",
        outcome="failed",
        expected={"a": 1},
        seen={"a": 2},
        at=1.25,
        deviation=at,
    )
    end = msgspec.structs.replace(
        ended("t", "failed"), bundle="bundles/t", seconds={"setup": 1.0, "call": 2.0}, scene=SCENE
    )
    scene_event = ledger.ScenePlayed(
        wall=3.5, scene=SCENE, worker="gw0", seconds=1, steps={}, markers={"deploy": {"ready": 2.5}}
    )
    run = msgspec.structs.replace(
        begin({"t": ("AA-001",)}), reproduce="grove-conformance run --seed 1", environment={"kubernetes": "1.36.3"}
    )
    registry = Registry({"core": "The core."}, {"AA-001": requirements.entry(**changes)}, {})  # type: ignore[arg-type]
    return model.judge(registry, [run, started("t", "AA-001"), wrong, end, scene_event, DONE], TODAY)


def test_a_failure_has_expected_and_observed_state_its_time_and_its_evidence() -> None:
    root = ET.fromstring(junit.render(real()))
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None and failure.text is not None
    assert failure.text.splitlines() == [
        "cause: Text of AA-001.",
        "test: t",
        "check: w",
        "expected: {",
        '      "a": 1',
        "    }",
        "seen: {",
        '      "a": 2',
        "    }",
        "at: 1.250 s of the history, pods/a-0 (revision 12)",
        "evidence: bundles/t/",
        "reproduce: grove-conformance run --seed 1 --test t",
        "explained by: grove-conformance explain AA-001",
    ]


def properties(parent: ET.Element | None) -> dict[str, str]:
    assert parent is not None
    return {str(element.get("name")): str(element.get("value")) for element in parent.findall("properties/property")}


def test_junit_names_the_implementation_and_the_suite() -> None:
    root = ET.fromstring(junit.render(real()))
    suite = properties(root.find("testsuite"))
    assert suite["implementation"] == "mine 1" and suite["kubernetes"] == "1.36.3"
    assert (suite["verdict"], suite["profiles"], suite["profile verdict"]) == (
        "not-conformant",
        "core",
        "not-conformant",
    )
    case = properties(root.find("testsuite/testcase"))
    assert case == {
        "requirement": "Text of AA-001.",
        "level": "MUST",
        "profile": "core",
        "basis": "decision",
        "outcome": "failed",
        "deploy/ready": "2.500 s",
        "test": "t",
    }
    assert root.find("testsuite/testcase[@name='AA-001'][@classname='core.Deleted'][@time='3.000']") is not None


def test_the_page_counts_the_failures_that_junit_counts(tmp_path: Path) -> None:
    for report in reports()[: 2 * len(ALL_OUTCOMES)] + reports()[-1:]:
        suites = [suite for suite in ET.fromstring(junit.render(report)) if suite.get("name") != cases.GENERAL_GROUP]
        counts = Counter[str]()
        top = page.render(report, tmp_path).partition('id="profiles"')[0]
        for count, outcome in re.findall(r"</span> (\d+) ([a-z-]+)</a>", top):
            counts[outcome] += int(count)
        failures = sum(int(suite.get("failures", "")) for suite in suites)
        assert counts["failed"] + counts["stale-expectation"] == failures
        words = terminal.verdict_line(report).rpartition(": ")[2].rstrip(")").split(", ")
        assert [f"{count} {outcome}" for outcome, count in counts.items()] == words


def allure_results(folder: Path, report: Report) -> list[dict[str, object]]:
    allure.write(folder / "allure", report)
    results = [json.loads(path.read_text()) for path in (folder / "allure").glob("*-result.json")]
    return sorted(results, key=lambda result: str(result["fullName"]))


def test_allure_has_only_the_picture_of_the_evidence(tmp_path: Path) -> None:
    (tmp_path / "bundles" / "t").mkdir(parents=True)
    for name in ("timeline.svg", "history.jsonl"):
        (tmp_path / "bundles" / "t" / name).write_text("<svg/>")
    [result] = allure_results(tmp_path, real())
    assert result["start"] == 1000 and result["stop"] == 4000
    [step] = result["steps"]  # type: ignore[misc]
    assert (step["name"], step["status"]) == ("t: w", "failed")
    [attached] = step["attachments"]
    assert [path.name for path in (tmp_path / "allure").glob("*-attachment*")] == [attached["source"]]
    assert (tmp_path / "allure" / attached["source"]).read_text() == "<svg/>"
    assert "evidence: bundles/t/" in result["statusDetails"]["trace"]  # type: ignore[index]


def test_only_pictures_are_attached(tmp_path: Path) -> None:
    (tmp_path / "bundles" / "t").mkdir(parents=True)
    os.mkfifo(tmp_path / "bundles" / "t" / "timeline.svg")
    [result] = allure_results(tmp_path, real())
    assert "attachments" not in result["steps"][0]  # type: ignore[index]


def test_allure_identifies_a_requirement_in_the_next_run(tmp_path: Path) -> None:
    [one], [other] = (
        allure_results(tmp_path / "a", real()),
        allure_results(tmp_path / "b", real(text="It does the same, reworded.")),
    )
    assert one["name"] != other["name"]
    assert one["historyId"] == other["historyId"] and one["uuid"] != other["uuid"]


def test_allure_groups_by_cause_and_by_profile(tmp_path: Path) -> None:
    report = judged(("failed", Level.MUST), ("failed", Level.MUST), ("stale", Level.MUST))
    results = allure_results(tmp_path, report)
    categories = json.loads((tmp_path / "allure" / "categories.json").read_text())
    assert [category["name"] for category in categories] == ["1. Text of AA-001.", "2. Text of AA-002.", "profile core"]
    first = [
        next(c["name"] for c in categories if matches(c, r) and r["status"] in c["matchedStatuses"]) for r in results
    ]
    assert first == ["1. Text of AA-001.", "2. Text of AA-002.", "profile core"]


def matches(category: dict[str, str], result: dict[str, object]) -> bool:
    """Return whether Allure puts a result into a category: Allure matches the whole text, and a dot matches any
    character."""
    trace = result["statusDetails"]["trace"]  # type: ignore[index]
    return re.fullmatch(category["traceRegex"], trace, re.S) is not None


def test_values_of_an_implementation_are_escaped(tmp_path: Path) -> None:
    report = real(violation="<b> & \x1b[2J\x00")
    assert "&lt;b&gt; &amp; \\x1b[2J\\x00" in junit.render(report)
    hostile = msgspec.structs.replace(report.started, environment={"kubernetes": "1\nverdict = conformant é\\"})
    allure.write(tmp_path / "allure", replace(report, started=hostile))
    lines = (tmp_path / "allure" / "environment.properties").read_text().splitlines()
    assert "verdict = not-conformant" in lines and "verdict = conformant" not in " ".join(lines).replace(
        "\\nverdict", ""
    )
    assert r"kubernetes = 1\nverdict = conformant \u00e9\\" in lines


def test_results_that_cannot_be_written_are_reported_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "allure").write_text("in the way")
    with pytest.raises(HarnessError, match="cannot be written: File exists"):
        allure.write(tmp_path / "allure", real())
