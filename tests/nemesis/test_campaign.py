"""Tests that a violation that sometimes occurs without a fault is not a finding."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from conformance.cluster.progress import report_nothing
from conformance.history.log import Log
from conformance.history.query import History
from conformance.nemesis import campaign, catalog, scenario
from conformance.nemesis.bed import FaultTestbed
from conformance.nemesis.campaign import REPLAYS, Campaign, Journal, PlanTrial, ScenarioResults
from conformance.nemesis.play import FaultlessRuns, FaultOutcome, FaultVerdict, Rest
from conformance.nemesis.points import FaultPlan, FaultPoint
from conformance.nemesis.rest import NotAtRest
from conformance.nemesis.scenario import FaultScenario

POINTS = [FaultPoint("create", "write", "create", "pods", "", name) for name in ("a", "b")]
VIOLATION_BY_CHANCE, VIOLATION_BY_FAULT = "INV-005 is broken", "INV-025 is broken"


class FlakyImplementation:
    """An implementation with VIOLATION_BY_CHANCE in every run with a fault, and in the runs without a fault for which
    `violations` yields True. It has VIOLATION_BY_FAULT only in runs with a fault at point b."""

    def __init__(self, violations: list[bool], *, comes_to_rest: bool = True) -> None:
        self.now: Iterator[bool] = iter(violations)
        self.comes_to_rest = comes_to_rest

    def run(self) -> dict[str, Rest]:
        if not self.comes_to_rest:
            raise NotAtRest("there are still changes")
        return {"create": Rest({}, 1.0, 0, frozenset({VIOLATION_BY_CHANCE} if next(self.now) else ()))}

    def learn(self, bed: FaultTestbed, scenario: FaultScenario) -> FaultlessRuns:
        return FaultlessRuns([{"create": Rest({}, 1.0, 0, frozenset())}], POINTS, History(Log(), "n"))

    def learn_more(
        self, bed: FaultTestbed, scenario: FaultScenario, faultless_runs: FaultlessRuns, runs: int
    ) -> FaultlessRuns:
        return replace(faultless_runs, runs=[*faultless_runs.runs, *(self.run() for _ in range(runs))])

    def play(
        self, bed: FaultTestbed, scenario: FaultScenario, faultless_runs: FaultlessRuns, plan: FaultPlan
    ) -> FaultOutcome:
        lines = {VIOLATION_BY_CHANCE, *([VIOLATION_BY_FAULT] if plan.point.name == "b" else [])}
        broken = sorted(lines - faultless_runs.rests["create"].broken)
        return FaultOutcome(plan, FaultVerdict.DIFFERENT if broken else FaultVerdict.SAME, 1.0, "create", tuple(broken))


class ChangingImplementation(FlakyImplementation):
    """An implementation that breaks a different invariant in each run with a fault."""

    def play(
        self, bed: FaultTestbed, scenario: FaultScenario, faultless_runs: FaultlessRuns, plan: FaultPlan
    ) -> FaultOutcome:
        return FaultOutcome(
            plan, FaultVerdict.DIFFERENT, 1.0, "create", (f"INV-00{next(self.violation_numbers)} is broken",)
        )

    violation_numbers = itertools.count()


class EarlyViolation(FlakyImplementation):
    """An implementation that breaks an invariant before the fault is injected. The fault at point a is never
    injected."""

    def play(
        self, bed: FaultTestbed, scenario: FaultScenario, faultless_runs: FaultlessRuns, plan: FaultPlan
    ) -> FaultOutcome:
        verdict = FaultVerdict.NOT_STRUCK if plan.point.name == "a" else FaultVerdict.DIFFERENT
        return FaultOutcome(plan, verdict, 1.0, "create", (VIOLATION_BY_CHANCE,))


class FakeTestbed:
    """A testbed that runs nothing."""

    def restart(self) -> None:
        """Do nothing, because there are no processes."""


def run_campaign(
    monkeypatch: pytest.MonkeyPatch, path: Path, implementation: FlakyImplementation
) -> tuple[ScenarioResults, dict[str, PlanTrial]]:
    for name in ("learn", "learn_more", "play"):
        monkeypatch.setattr(campaign, name, getattr(implementation, name))
    monkeypatch.setattr(campaign, "missing_requirement", lambda judged, scenario: "")
    testbed: Any = FakeTestbed()
    testbed.descriptor = None
    fault_campaign = Campaign(
        [cast("FaultTestbed", testbed)], Journal(path / "tried.jsonl"), report_nothing, lambda outcome: None
    )
    fault_campaign.run([scenario.load("create")], catalog.select(["conflict"]), 60)
    [results] = fault_campaign.results
    return results, {trial.plan.point.name: trial for trial in results.tried}


def test_a_violation_in_a_later_run_without_the_fault_is_not_due_to_the_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, FlakyImplementation([False, False, True] + [False] * REPLAYS))
    assert trials["a"].verdict == "same" and results.findings() == [trials["b"]]
    assert trials["b"].lines == (VIOLATION_BY_FAULT,)


def test_a_violation_that_never_occurs_without_the_fault_is_due_to_the_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, FlakyImplementation([False] * 2 * REPLAYS))
    assert results.findings() == [trials["a"], trials["b"]] and trials["b"].lines == (
        VIOLATION_BY_CHANCE,
        VIOLATION_BY_FAULT,
    )


def test_a_scenario_that_does_not_always_come_to_rest_yields_no_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, FlakyImplementation([], comes_to_rest=False))
    assert results.is_unstable(trials["a"]) and "may not come to rest" in trials["a"].lines[0]


def test_an_end_that_differs_each_time_is_not_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, ChangingImplementation([]))
    assert not results.findings() and all(results.is_unstable(attempt) for attempt in trials.values())


def test_a_difference_before_the_fault_is_not_due_to_the_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, EarlyViolation([]))
    assert not results.findings() and trials["a"].bad == 0 and trials["b"].played == 1


def test_an_unstable_violation_of_one_plan_is_not_a_finding_of_another() -> None:
    plans = [FaultPlan("create", "conflict", point) for point in POINTS]
    unstable_trial = PlanTrial(plans[0], "different", 1.0, "create", (VIOLATION_BY_CHANCE,), 1, 2, way=True)
    trial_by_chance = PlanTrial(plans[1], "different", 1.0, "create", (VIOLATION_BY_CHANCE,), 3, 3, way=True)
    with_finding = msgspec.structs.replace(trial_by_chance, lines=(VIOLATION_BY_CHANCE, VIOLATION_BY_FAULT))
    results = ScenarioResults(scenario.load("create"), tried=[unstable_trial, trial_by_chance, with_finding])
    assert (
        ScenarioResults(
            scenario.load("create"), tried=[trial_by_chance], unprovoked_lines={VIOLATION_BY_CHANCE}
        ).findings()
        == []
    )
    trials_by_end = [msgspec.structs.replace(attempt, way=False) for attempt in (unstable_trial, trial_by_chance)]
    assert ScenarioResults(scenario.load("create"), tried=trials_by_end).findings() == [trials_by_end[1]]
    assert results.chance_lines() == {VIOLATION_BY_CHANCE} and results.findings() == [with_finding]
    assert [results.is_unstable(attempt) for attempt in results.tried] == [True, True, False]
