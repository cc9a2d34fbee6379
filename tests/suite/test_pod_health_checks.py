"""Tests that the counts of a clique and its condition MinAvailableBreached are judged separately. Needs no cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.grove import health, workloads
from conformance.grove.expected import expected
from conformance.grove.health import HealthCase
from conformance.suite.outcomes.checks import CheckFailed, Checks
from conformance.suite.registry.requirement import MARK
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import SceneRun, Step
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.tests.core import test_pod_health
from conformance.tests.core.test_pod_health import PodsInAllStates
from tests.history.story import Story

IDS = ("CORE-011", "CORE-016", "CORE-017", "CORE-038", "CORE-041")
BREACHES = {"CORE-017", "CORE-038", "CORE-041"}
ENV = cast(SceneEnvironment, SimpleNamespace(workload=lambda name, **sizes: dict(workloads.load(name, sizes))))


def failed(status: Callable[[HealthCase], dict[str, Any]]) -> set[str]:
    """Return the requirements that fail if the right status of each clique is overridden by `status`."""
    scene, story = PodsInAllStates(), Story()
    scene.cases = {case.name: case for case in health.cases()}
    scene.cliques = expected(test_pod_health._workload(ENV, scene.cases)).cliques
    for clique in scene.cliques.values():
        case = scene.cases[clique.template.name]
        correct_status = {"scheduledReplicas": len(case.pods), "readyReplicas": case.ready, "breached": case.breached}
        reported = correct_status | status(case)
        conditions = [
            {"type": "PodCliqueScheduled", "status": "True"},
            {"type": "MinAvailableBreached", "status": str(reported.pop("breached"))},
        ]
        last = story.record("podcliques", clique.name, {"status": {**reported, "conditions": conditions}})
    steps = {step: Step(step, last.seq, None, last.at) for step in ("all pods bound", "statuses follow the pods")}
    return set().union(*(_failed(test, SceneRun("health", scene, story.history, steps, {})) for test in _tests()))


def _tests() -> list[Any]:
    marked = [test for test in vars(test_pod_health).values() if hasattr(test, "pytestmark")]
    return [test for test in marked if any(mark.name == MARK and mark.args[0] in IDS for mark in test.pytestmark)]


def _failed(test: Any, played: SceneRun) -> set[str]:
    (ids,) = [mark.args for mark in test.pytestmark if mark.name == MARK]
    checks = Checks("test", ids, lambda check: None)
    with contextlib.suppress(CheckFailed):
        test(Recorded(played, played.scene, checks))
    return {check.id for check in checks.failures}


@pytest.mark.parametrize(
    ("status", "ids"),
    [
        (lambda case: {}, set()),
        (lambda case: {"readyReplicas": case.ready + 1}, {"CORE-011"}),
        (lambda case: {"scheduledReplicas": 0}, {"CORE-016"}),
        (lambda case: {"breached": not case.breached}, BREACHES),
    ],
)
def test_a_wrong_status_fails_only_the_requirements_about_it(
    status: Callable[[HealthCase], dict[str, Any]], ids: set[str]
) -> None:
    assert failed(status) == ids
