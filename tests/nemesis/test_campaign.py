"""Tests that a violation which sometimes occurs without a fault is not a finding."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from conformance.cluster.progress import silent
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
BY_ITSELF, BY_THE_FAULT = "INV-005 is broken", "INV-025 is broken"


class Sometimes:
    """An implementation that breaks BY_ITSELF in every run with a fault, and in those runs without a fault for which
    `now` yields True. It breaks BY_THE_FAULT only in runs with a fault at point b."""

    def __init__(self, now: list[bool], *, rests: bool = True) -> None:
        self.now: Iterator[bool] = iter(now)
        self.rests = rests

    def run(self) -> dict[str, Rest]:
        if not self.rests:
            raise NotAtRest("there are still changes")
        return {"create": Rest({}, 1.0, 0, frozenset({BY_ITSELF} if next(self.now) else ()))}

    def learn(self, bed: FaultTestbed, scenario: FaultScenario) -> FaultlessRuns:
        return FaultlessRuns([{"create": Rest({}, 1.0, 0, frozenset())}], POINTS, History(Log(), "n"))

    def learn_more(self, bed: FaultTestbed, scenario: FaultScenario, course: FaultlessRuns, runs: int) -> FaultlessRuns:
        return replace(course, runs=[*course.runs, *(self.run() for _ in range(runs))])

    def play(self, bed: FaultTestbed, scenario: FaultScenario, course: FaultlessRuns, plan: FaultPlan) -> FaultOutcome:
        lines = {BY_ITSELF, *([BY_THE_FAULT] if plan.point.name == "b" else [])}
        broken = sorted(lines - course.rests["create"].broken)
        return FaultOutcome(plan, FaultVerdict.DIFFERENT if broken else FaultVerdict.SAME, 1.0, "create", tuple(broken))


class Capricious(Sometimes):
    """Breaks a different invariant in each run with a fault."""

    def play(self, bed: FaultTestbed, scenario: FaultScenario, course: FaultlessRuns, plan: FaultPlan) -> FaultOutcome:
        return FaultOutcome(plan, FaultVerdict.DIFFERENT, 1.0, "create", (f"INV-00{next(self.number)} is broken",))

    number = itertools.count()


class Early(Sometimes):
    """Breaks an invariant before the fault is injected; the fault at point a is never injected."""

    def play(self, bed: FaultTestbed, scenario: FaultScenario, course: FaultlessRuns, plan: FaultPlan) -> FaultOutcome:
        verdict = FaultVerdict.NOT_STRUCK if plan.point.name == "a" else FaultVerdict.DIFFERENT
        return FaultOutcome(plan, verdict, 1.0, "create", (BY_ITSELF,))


class Lane:
    """A testbed that runs nothing."""

    def restart(self) -> None:
        """Do nothing: there are no processes."""


def run_campaign(
    monkeypatch: pytest.MonkeyPatch, path: Path, implementation: Sometimes
) -> tuple[ScenarioResults, dict[str, PlanTrial]]:
    for name in ("learn", "learn_more", "play"):
        monkeypatch.setattr(campaign, name, getattr(implementation, name))
    monkeypatch.setattr(campaign, "unmet", lambda judged, scenario: "")
    lane: Any = Lane()
    lane.descriptor = None
    running = Campaign([cast("FaultTestbed", lane)], Journal(path / "tried.jsonl"), silent, lambda outcome: None)
    running.run([scenario.load("create")], catalog.chosen(["conflict"]), 60)
    [results] = running.done
    return results, {trial.plan.point.name: trial for trial in results.tried}


def test_a_violation_in_a_later_run_without_the_fault_is_not_due_to_the_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, Sometimes([False, False, True] + [False] * REPLAYS))
    assert trials["a"].verdict == "same" and results.findings() == [trials["b"]]
    assert trials["b"].lines == (BY_THE_FAULT,)


def test_a_violation_that_never_occurs_without_the_fault_is_due_to_the_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, Sometimes([False] * 2 * REPLAYS))
    assert results.findings() == [trials["a"], trials["b"]] and trials["b"].lines == (BY_ITSELF, BY_THE_FAULT)


def test_a_scenario_that_does_not_always_come_to_rest_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, Sometimes([], rests=False))
    assert results.unstable(trials["a"]) and "may not come to rest" in trials["a"].lines[0]


def test_a_different_end_each_time_is_not_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, Capricious([]))
    assert not results.findings() and all(results.unstable(attempt) for attempt in trials.values())


def test_a_difference_before_the_fault_is_not_due_to_the_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results, trials = run_campaign(monkeypatch, tmp_path, Early([]))
    assert not results.findings() and trials["a"].bad == 0 and trials["b"].played == 1


def test_an_unstable_violation_of_one_plan_is_not_a_finding_of_another() -> None:
    plans = [FaultPlan("create", "conflict", point) for point in POINTS]
    shaky = PlanTrial(plans[0], "different", 1.0, "create", (BY_ITSELF,), 1, 2, way=True)
    chance = PlanTrial(plans[1], "different", 1.0, "create", (BY_ITSELF,), 3, 3, way=True)
    with_finding = msgspec.structs.replace(chance, lines=(BY_ITSELF, BY_THE_FAULT))
    results = ScenarioResults(scenario.load("create"), tried=[shaky, chance, with_finding])
    assert ScenarioResults(scenario.load("create"), tried=[chance], unprovoked={BY_ITSELF}).findings() == []
    ends = [msgspec.structs.replace(attempt, way=False) for attempt in (shaky, chance)]
    assert ScenarioResults(scenario.load("create"), tried=ends).findings() == [ends[1]]
    assert results.by_chance() == {BY_ITSELF} and results.findings() == [with_finding]
    assert [results.unstable(attempt) for attempt in results.tried] == [True, True, False]
