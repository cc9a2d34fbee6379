"""Tests that waits count only the time in which the machine was fast enough. Needs no cluster; time is scripted."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from conformance import invariants
from conformance.cluster import nodes
from conformance.cluster.lateness import Delay
from conformance.errors import HarnessError
from conformance.grove import health
from conformance.invariants.result import RuleResult
from conformance.suite.environment import RunningTest
from conformance.suite.outcomes.checks import CheckFailed
from conformance.suite.registry import requirement
from conformance.suite.scenes import unattended
from conformance.suite.scenes.case import Case
from conformance.suite.scenes.machine import MAX_EXTENSION, Machine
from conformance.suite.scenes.scene import SceneEnded
from conformance.suite.session.worker import ClusterEnvironment
from conformance.suite.settings import RunSettings
from tests.history.scripted import Scripted
from tests.history.story import Story
from tests.suite.test_case import later, play


@pytest.fixture
def story() -> Story:
    return Story(Scripted())


def slow_case(story: Story, until: float, **options: Any) -> Case:
    """Return a case on a machine that is too slow until a given time."""

    def time_lost(begin: float) -> tuple[float, list[Delay]]:
        end = min(until, story.log.now())
        return max(0.0, end - begin), [Delay("kube-apiserver", 1.5, 0, end)] if end > begin else []

    return play(story, machine=Machine(time_lost, story.log.now), **options)


def test_a_wait_lasts_for_as_long_again_as_the_machine_was_too_slow(story: Story) -> None:
    later(story, 75, "a1")
    slow_case(story, until=50).until("AA-001", "a pod", lambda view: view.get("pods", "a1") is not None, 30)
    assert story.log.now() == 75


@pytest.mark.parametrize("scale", [1, 0.25])
def test_an_implementation_that_had_its_time_is_blamed(story: Story, scale: float) -> None:
    with pytest.raises(CheckFailed):
        slow_case(story, until=20, scale=scale).until("AA-001", "a pod", lambda view: False, 40)
    assert story.log.now() == pytest.approx(40 * scale + 20, abs=2)


def test_a_machine_that_stays_too_slow_ends_the_scene_without_a_verdict(story: Story) -> None:
    case = slow_case(story, until=float("inf"))
    with pytest.raises(HarnessError, match=r'too slow: "a pod" was not seen \(kube-apiserver answered after 1\.5 s'):
        case.wait_for("a pod", lambda view: False, 30)
    assert 30 * MAX_EXTENSION <= story.log.now() <= 30 * (MAX_EXTENSION + 2) and case.checks.recorded == []


def test_a_quiet_time_is_one_in_which_the_machine_was_well(story: Story) -> None:
    slow_case(story, until=3).quiet(2, 30)
    assert story.log.now() == pytest.approx(6)


@pytest.mark.parametrize("seconds", [4, 9])
def test_late_actions_of_the_suite_are_not_failures_of_the_implementation(story: Story, seconds: float) -> None:
    case = play(story)
    case.quiet(5)
    if seconds > 5:
        case.require_in_time("a breach", 0, seconds)
    else:
        with pytest.raises(HarnessError, match=r"the suite acted 5\.0 s after a breach, and had to act within 4 s"):
            case.require_in_time("a breach", 0, seconds)


INF = float("inf")


@pytest.mark.parametrize(
    ("until", "declared", "outcome"),
    [(INF, (), "not judged"), (INF, ("GANG-024",), "no verdict"), (-INF, (), "failed")],
)
def test_a_rule_that_a_slow_machine_may_have_broken_takes_no_verdict_of_others(
    story: Story, monkeypatch: pytest.MonkeyPatch, until: float, declared: tuple[str, ...], outcome: str
) -> None:
    violation = RuleResult("GANG-024", "a pod is created while its PodGang exists", False)
    monkeypatch.setattr(invariants, "judge", lambda *_, **__: [violation])
    case = slow_case(story, until=until)
    case.checks.declared = declared
    environment = object.__new__(ClusterEnvironment)
    environment._settings = RunSettings(run="r", directory="", implementation="x")
    environment._registry = requirement.load()
    environment.driver = SimpleNamespace(descriptor=SimpleNamespace(settle=0))  # type: ignore[assignment]
    end = partial(environment._judge_invariants, RunningTest("t", case.checks), case, finished=True)
    if outcome == "no verdict":
        with pytest.raises(HarnessError, match="too slow: GANG-024 depends on how fast things are noticed"):
            end()
    else:
        end()
        assert [check.id for check in case.checks.failures] == ["GANG-024"] * (outcome == "failed")


def _bound(story: Story, **metadata: Any) -> None:
    story.node("n1", tags={nodes.POOL: "pool"})
    story.record("pods", "a1", {"metadata": metadata, "spec": {"nodeName": "n1"}}, after=0)


def test_a_kubelet_that_lags_ends_the_scene_without_a_verdict(story: Story) -> None:
    _bound(story)
    with pytest.raises(HarnessError, match=r"nothing was heard of 1 bound pods, of the first for 30 s"):
        play(story).wait_for("Ready", lambda view: False, 30)


def test_a_kubelet_without_pending_statuses_does_not_lag(story: Story) -> None:
    _bound(story, annotations={health.HOLD_STATUS: "yes"})
    with pytest.raises(SceneEnded):
        play(story).wait_for("Ready", lambda view: False, 2 * unattended.MAX_KUBELET_LAG_SECONDS)
