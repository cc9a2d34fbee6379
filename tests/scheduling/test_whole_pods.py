"""Tests of pod-level resources: a cluster without the feature PodLevelResources drops the field, so their requirement
is blocked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from conformance.grove.scheduling import scenarios
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.dry_run import Reply
from conformance.testing import judging

CAST = {
    scenario.id: scenario for scenario in judging.expressible_scenarios(scenarios.load(), ["SCHED-085", "SCHED-086"])
}
POD_LEVEL_SCENARIOS = {"filter-pod-level", "filter-pod-level-fits"}


def without_resources(pod):
    return {**pod, "spec": {name: value for name, value in pod["spec"].items() if name != "resources"}}


@pytest.fixture
def play_on(monkeypatch):
    """Run the scenarios on a cluster that responds to dry runs with `answer`, and return the scene and the ids of the
    scenarios that ran."""
    ids: set[str] = set()

    class Played:
        saw_everything_at_once = has_priorities = True

        def __init__(self, env, cast):
            ids.update(scenario.id for scenario in cast)

        def run(self):
            return []

    monkeypatch.setattr(judging, "ScenarioRunner", Played)

    def play(answer, *names):
        scene = judging.Scenarios()
        env = SimpleNamespace(dry_run=SimpleNamespace(create=lambda obj: obj, ask=answer))
        scene.run_all(env, [CAST[name] for name in names or CAST])
        return scene, ids

    return play


def judge(scene, id):
    checks = []
    run = SimpleNamespace(scene=scene, given=lambda step: None, holds=lambda description, holds: checks.append(holds))
    judging.judge(run, id)
    return checks


def test_a_cluster_that_drops_the_resources_of_pods_blocks_their_requirement(play_on):
    scene, ids = play_on(lambda pod: Reply(201, without_resources(pod)))
    assert ids == CAST.keys() - POD_LEVEL_SCENARIOS
    with pytest.raises(Blocked, match="PodLevelResources"):
        judge(scene, "SCHED-085")
    assert judge(scene, "SCHED-086") == [True]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda pod: Reply(201, pod), id="kept"),
        pytest.param(lambda pod: Reply(403, {"kind": "Status"}), id="refused for another reason"),
    ],
)
def test_other_clusters_are_judged(play_on, answer):
    scene, ids = play_on(answer)
    assert ids == CAST.keys() >= POD_LEVEL_SCENARIOS
    assert judge(scene, "SCHED-085") == [True]


def test_other_scenarios_need_no_probe(play_on):
    def fail(pod):
        raise AssertionError("a pod was created")

    assert play_on(fail, "filter-init")[1] == {"filter-init"}
