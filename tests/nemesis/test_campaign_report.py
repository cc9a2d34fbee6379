"""Tests of a campaign's report: the plans that were tried, the findings, and the files that replay findings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance import formats
from conformance.errors import UsageError
from conformance.history.log import Log
from conformance.history.query import History
from conformance.nemesis import results, scenario
from conformance.nemesis.campaign import Journal, PlanTrial, ScenarioResults
from conformance.nemesis.play import FaultlessRuns, Rest
from conformance.nemesis.points import FaultPlan, FaultPoint
from conformance.nemesis.sides import ObjectChange, side_by_side

POINT = FaultPoint("create", "write", "create", "pods", "", "s-a-*", 2)
PLAN = FaultPlan("create", "killed-after", POINT)
DESCRIPTION = results.RunInfo(
    "mine", "1", "operator", {"binary": "x"}, "1.36.3", "2026-01-01T00:00:00+00:00", "nemesis run"
)


def trial(bad_runs: int, runs: int, verdict: str = "different", line: str = "+ phase: <script>") -> PlanTrial:
    return PlanTrial(PLAN, verdict, 4.0, "create", ("- phase: Running", line), bad_runs, runs)


def scenario_results(*trials: PlanTrial) -> ScenarioResults:
    faultless_runs = FaultlessRuns([{"create": Rest({}, 1.0, 0, frozenset())}], [POINT], History(Log(), "n"))
    return ScenarioResults(scenario.load("create"), faultless_runs, plans=2, tried=list(trials))


def test_only_a_plan_that_fails_each_time_is_a_finding() -> None:
    document = results.report(
        DESCRIPTION,
        [scenario_results(trial(3, 3), trial(1, 2, line="+ phase: Failed"), trial(0, 1, "same"))],
        complete=False,
    )
    summary = document["summary"]
    assert (summary["findings"], summary["unstable"], summary["tried"], summary["plans"]) == (1, 1, 3, 2)
    assert document["scenarios"][0]["faults"] == {"killed-after": {"tried": 3, "findings": 1}}


def test_a_finding_can_be_replayed_from_its_file(tmp_path: Path) -> None:
    document = results.report(DESCRIPTION, [scenario_results(trial(3, 3))], complete=True)
    results.write(tmp_path, document, {})
    [file] = (tmp_path / "plans").iterdir()
    stored_plan = results.read_plan(file)
    assert stored_plan.plan == PLAN and stored_plan.plan.point.fields == PLAN.point.fields
    assert (stored_plan.implementation, stored_plan.settings, stored_plan.role) == (
        "mine",
        {"binary": "x"},
        "operator",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: write", "kind: read", 'point.kind: "read" is not known here — known: event, write'),
        ("role: operator", "role: oprator", 'role: "oprator" is not known here — did you mean "operator"'),
        ("NemesisPlan", "NemesisReport", "is not a NemesisPlan"),
    ],
)
def test_a_mistake_in_a_plan_is_reported(tmp_path: Path, old: str, new: str, message: str) -> None:
    results.write(tmp_path, results.report(DESCRIPTION, [scenario_results(trial(3, 3))], complete=True), {})
    [file] = (tmp_path / "plans").iterdir()
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(UsageError, match=message):
        results.read_plan(file)


def test_the_page_shows_both_runs_and_escapes_texts_of_the_cluster(tmp_path: Path) -> None:
    document = results.report(DESCRIPTION, [scenario_results(trial(3, 3))], complete=True)
    rows = side_by_side([ObjectChange(0.1, "pods/s: ready")], [ObjectChange(0.2, "pods/s: <b>gated</b>")])
    page = results.page(document, {str(PLAN): rows})
    assert "1 of 1 plans" in page and "first deviation" in page and "nemesis replay plans/01" in page
    assert "<script>" not in page.partition("<main")[2].partition("</main>")[0] and "<b>" not in page


def test_a_stopped_campaign_can_be_continued(tmp_path: Path) -> None:
    path = tmp_path / "tried.jsonl"
    Journal(path).add(trial(3, 3))
    assert Journal(path).trials == {PLAN: trial(3, 3)}


def test_an_incomplete_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "tried.jsonl"
    Journal(path).add(trial(3, 3))
    path.write_bytes(path.read_bytes() + b'{"plan": {"scen')
    journal = Journal(path)
    assert set(journal.trials) == {PLAN}
    other_trial = PlanTrial(FaultPlan("create", "slow", POINT), "same", 1.0)
    journal.add(other_trial)
    assert set(Journal(path).trials) == {PLAN, other_trial.plan}


def test_another_file_is_not_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("kind: Implementation\n")
    with pytest.raises(UsageError, match=r"plan\.yaml"):
        results.read_plan(path)


@pytest.mark.parametrize("name", scenario.names())
def test_every_scenario_can_be_read(name: str) -> None:
    loaded_scenario = scenario.load(name)
    assert loaded_scenario.steps and any(not step.quiet for step in loaded_scenario.steps)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("quiet: true", "quit: true", 'steps[0].quit: unknown field — did you mean "quiet"?'),
        ("create: {}", "create: {a: 1}", "steps[0].create: "),
        ("crash: kept-0-a, ", "", 'steps[1]: the field "create" is missing — add it'),
    ],
)
def test_a_mistake_in_a_scenario_is_reported(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (scenario.folder() / "termination.yaml").read_text("utf-8")
    assert old in text
    (tmp_path / "own.yaml").write_text(text.replace(old, new), "utf-8")
    with pytest.raises(UsageError, match=re.escape(message)):
        formats.read(tmp_path / "own.yaml", scenario.FaultScenarioFormat)


def test_an_unknown_scenario_is_reported_in_one_line() -> None:
    with pytest.raises(UsageError, match=r"unknown scenario 'updat'.*update"):
        scenario.load("updat")
