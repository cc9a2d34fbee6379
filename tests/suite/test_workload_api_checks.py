"""Tests of checks in the profile workload-api that kube-scheduler never fails: the conformance tests judge an in-memory
gang scheduler, first as it is, and then with one broken promise at a time.

test_workload_api_profile.py tests what breaks on a real cluster without some feature gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import isfunction
from types import SimpleNamespace
from typing import Any

import pytest
from toy_gangs.environment import Environment

from conformance.suite.outcomes.checks import Blocked, CheckFailed, Checks
from conformance.suite.outcomes.ledger import Check
from conformance.suite.registry.requirement import MARK
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import AttributeNotSet, Scene, SceneEnded, SceneRun, scenes_of

MODULES = ("gangs", "competition", "life_cycle", "preemption", "priorities", "topology", "trees")
OPTIONAL_LIMITS = {"WAPI-060"}
"""Requirements with the level MAY that the in-memory scheduler does not meet."""
BROKEN_PROMISES = {
    "a gang that failed is not tried again": "WAPI-002",
    "all Pods of a gang are required": "WAPI-004",
    "running gangs below their minimum are evicted": "WAPI-009",
    "a gang waits for its Workload": "WAPI-011",
    "a gang is placed in part": "WAPI-012",
    "a waiting gang blocks the queue": "WAPI-013",
    "a node gets one Pod of a gang": "WAPI-014",
    "nodes stay nominated": "WAPI-016",
    "a group gets no default class": "WAPI-023",
    "two schedulers share a gang": "WAPI-025",
    "a gang that must not evict does": "WAPI-026",
    "Pods of another priority are called unschedulable": "WAPI-097",
    "gangs evict nobody": "WAPI-030",
    "trees evict nobody": "WAPI-031",
    "a gang evicts before it looks for room": "WAPI-032",
    "a Pod that joins is placed in any domain": "WAPI-041",
    "gangs with a topology key evict nobody": "WAPI-043",
    "only the first domain is tried": "WAPI-044",
}
"""A broken promise → the requirement that has to fail because of it."""
PERMITTED_BEHAVIOR = (
    ("only nodes let a gang be tried again", "WAPI-008", "passed"),
    ("all children of a tree are required", "WAPI-053", "blocked"),
    ("Pods of another priority are called unschedulable", "WAPI-020", "passed"),
    ("Pods of another priority are called unschedulable", "WAPI-021", "passed"),
)
"""A permitted behavior of a scheduler, a requirement that the behavior does not break, and its outcome."""
CONTROL_PLANE_IDS = ("WAPI-010", "WAPI-023", "WAPI-028")


def conformance_tests() -> Iterator[Callable[..., None]]:
    for module in MODULES:
        members = vars(import_module(f"conformance.tests.workload_api.test_{module}")).values()
        yield from (member for member in members if isfunction(member) and member.__name__.startswith("test_"))


def play_scene(scene: type[Scene], fault: str) -> SceneRun:
    env: Any = Environment(fault)
    played_scene, ended = scene(), None
    try:
        played_scene.play(env)
    except SceneEnded as error:
        ended = error
    return SceneRun(scene.__name__, played_scene, env.history, env.steps, {}, ended=ended)


def outcomes(fault: str = "", only: str = "") -> dict[str, str]:
    """Play the scenes of all requirements, or of one, and judge them: requirement → passed, failed or blocked."""
    result: dict[str, str] = {}
    recordings: dict[type[Scene], SceneRun] = {}
    for test in conformance_tests():
        [mark] = [candidate for candidate in test.pytestmark if candidate.name == MARK]  # type: ignore[attr-defined]
        [id] = mark.args
        if only in ("", id):
            [scene] = scenes_of(test)
            if scene not in recordings:
                recordings[scene] = play_scene(scene, fault)
            result[id] = judge(test, recordings[scene], id, mark.kwargs["reaches"])
    return result


def judge(test: Callable[..., None], recording: SceneRun, id: str, reaches: tuple[str, ...]) -> str:
    recorded: list[Check] = []
    run = Recorded(recording, recording.scene, Checks(test.__name__, [id], recorded.append), reaches)
    outcome = "passed"
    try:
        try:
            test(run)
        except AttributeNotSet:
            run.unreached()
        run.judge_reaches()
    except CheckFailed:
        """The failure is among the recorded checks."""
    except Blocked:
        outcome = "blocked"
    return "failed" if any(check.outcome == "failed" for check in recorded) else outcome


def test_a_scheduler_that_keeps_all_promises_passes() -> None:
    results = outcomes()
    assert {id: outcome for id, outcome in results.items() if outcome != "passed"} == dict.fromkeys(
        OPTIONAL_LIMITS, "failed"
    )
    assert len(results) > 35


@pytest.mark.parametrize("fault", BROKEN_PROMISES)
def test_a_broken_promise_is_seen(fault: str) -> None:
    assert outcomes(fault, only=BROKEN_PROMISES[fault]) == {BROKEN_PROMISES[fault]: "failed"}


@pytest.mark.parametrize(("choice", "id", "outcome"), PERMITTED_BEHAVIOR)
def test_permitted_choices_of_a_scheduler_are_not_failures(choice: str, id: str, outcome: str) -> None:
    assert outcomes(choice, only=id) == {id: outcome}


@pytest.mark.parametrize("id", CONTROL_PLANE_IDS)
def test_another_scheduler_does_not_answer_for_the_control_plane(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = SimpleNamespace(scheduler_name="other", is_kube_scheduler=False)
    monkeypatch.setattr(Environment, "implementation", other)
    with pytest.raises(Blocked, match="no part of the implementation"):
        outcomes(only=id)
