"""Tests that the suite recreates all pods that a consolidating scheduler deletes, as their owners would."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.grove import labels
from conformance.grove.scheduling import manifests
from conformance.grove.scheduling.history import PodBound, PodDeleted
from conformance.grove.scheduling.instance import Gang, Group, Instance, Node, RunningPod
from conformance.grove.scheduling.scenario_format import Expectation
from conformance.grove.scheduling.scenarios import Scenario
from conformance.history.origins import ByHand
from conformance.history.record import ADDED, DELETED
from conformance.testing.part import CONSOLIDATION, MAX_RECREATIONS, ScenarioRun
from conformance.testing.playing import ScenarioRunner, _moves
from tests.history.story import Story

ASKS = {"gpus": 1}
INSTANCE = Instance(
    (Node("n", {"gpus": 8}, {}),),
    (
        Gang("A", (Group("w", 1, 1, ASKS),)),
        Gang("B", (Group("w", 1, 1, ASKS),), base="A"),
        Gang("R", (Group("w", 1, 1, ASKS),)),
    ),
    (RunningPod("r", "n", ASKS, gang="R", group="w"), RunningPod("other", "n", ASKS)),
)
TESTBED = manifests.Testbed("ns", "pool", "mine", prefix="s", gates=True)


class SimulatedCluster:
    """A cluster that consists of the objects that the suite creates in it."""

    def __init__(self) -> None:
        self.part = ScenarioRun(Scenario("S", "", INSTANCE, Expectation()), TESTBED, INSTANCE)
        self.gangs = {gang["metadata"]["name"]: gang for gang in manifests.gangs(INSTANCE, TESTBED)}
        self.pods = {
            pod["metadata"]["name"]: pod
            for pod in [*manifests.running_pods(INSTANCE, TESTBED), *manifests.pods(INSTANCE, TESTBED)]
        }
        self.play = ScenarioRunner.__new__(ScenarioRunner)
        self.play.env = self  # type: ignore[assignment]
        self.history: Any = SimpleNamespace(view=lambda: self)

    def list(self, resource: str, having: object = None) -> list[Any]:
        return list(self.pods.values())

    def get(self, resource: str, name: str) -> Any:
        return self.gangs[name]

    def create(self, pod: Any) -> None:
        self.pods[pod["metadata"]["name"]] = pod

    def patch(self, resource: str, name: str, change: Any) -> None:
        self.gangs[name] = {**self.gangs[name], "spec": {**self.gangs[name]["spec"], **change["spec"]}}

    def recreate_missing(self, *features: str) -> bool:
        """Inspect the pods and recreate missing pods. Return whether any pod was recreated."""
        self.part.judge_placement(self.list("pods"), features)
        return self.play._recreate([self.part])

    def evict(self, name: str) -> None:
        """Delete a pod, which is terminating before it is gone."""
        pod = self.pods[name]
        self.pods[name] = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "now"}}
        assert not self.recreate_missing(CONSOLIDATION) or f"{name}-again" in self.pods
        del self.pods[name]

    def references(self, gang: str) -> list[str]:
        [group] = self.gangs[gang]["spec"]["podgroups"]
        return [reference["name"] for reference in group["podReferences"]]


def test_nothing_is_recreated_while_all_pods_exist() -> None:
    assert not SimulatedCluster().recreate_missing(CONSOLIDATION)


def test_a_pod_that_ran_before_gets_another_name() -> None:
    cluster = SimulatedCluster()
    cluster.evict("s-r")
    assert cluster.references("s-r") == ["s-r-again"]
    recreated = cluster.pods["s-r-again"]
    assert "nodeName" not in recreated["spec"] and recreated["metadata"]["labels"][labels.GANG] == "s-r"
    assert not cluster.recreate_missing(CONSOLIDATION)


def test_a_pod_without_a_gang_is_also_recreated_and_counts_as_moved_when_bound() -> None:
    cluster = SimulatedCluster()
    cluster.evict("s-other")
    pod = cluster.pods["s-other-again"]
    assert labels.GANG not in pod["metadata"]["labels"]
    pod["spec"]["nodeName"] = TESTBED.node("n")
    outcome = manifests.outcome(INSTANCE, cluster.list("pods"), TESTBED)
    assert outcome.evicted == outcome.moved == {"other"} and not outcome.victims and not outcome.recreated
    records: Any = [
        SimpleNamespace(uid="1", name="s-other", at=0.0, kind=DELETED, object={}),
        SimpleNamespace(uid="2", name="s-other-again", at=1.0, kind=ADDED, object=pod),
        SimpleNamespace(uid="3", name="s-other-again", at=2.0, kind=DELETED, object=pod),
    ]
    origin = ByHand(dict(TESTBED.scenario_label))
    assert [move.step for move in _moves(records, cluster.part, {"1": origin, "2": origin})] == [
        PodDeleted("other"),
        PodBound("s-other-again", "", "", "n", "other"),
    ]


def test_a_label_that_a_scheduler_changes_hides_no_pod() -> None:
    story, cluster = Story(), SimulatedCluster()
    [pod, *_] = manifests.pods(INSTANCE, TESTBED)
    record = story.record("pods", pod["metadata"]["name"], pod)
    story.history.origins.record_created(pod, {"metadata": {"uid": record.uid}})
    relabeled = {**pod, "metadata": {**pod["metadata"], "labels": {}}, "spec": {"nodeName": TESTBED.node("n")}}
    story.record("pods", record.name, relabeled)
    story.pod("s-c-w-0", gang="s-a", clique="s-a-w", extra=TESTBED.scenario_label, node=TESTBED.node("n"))
    cluster.play.env = SimpleNamespace(history=story.history)  # type: ignore[assignment]
    [current] = cluster.play._pods(cluster.part)
    assert current["metadata"]["labels"] == pod["metadata"]["labels"]
    assert [move.step for move in cluster.play._moves(cluster.part)] == [PodBound(record.name, "A", "w", "n")]


@pytest.mark.parametrize("name", ["s-a-w-0", "s-r-again"])
def test_a_pod_bound_in_the_scenario_is_recreated_under_its_name(name: str) -> None:
    cluster = SimulatedCluster()
    cluster.evict("s-r")
    for _ in range(MAX_RECREATIONS):
        cluster.evict(name)
        assert cluster.recreate_missing(CONSOLIDATION) and "nodeName" not in cluster.pods[name]["spec"]
    cluster.evict(name)
    assert not cluster.recreate_missing(CONSOLIDATION), "this would never end"


@pytest.mark.parametrize("name", ["s-a-w-0", "s-r-again"])
def test_a_recreated_pod_missing_from_the_view_is_not_recreated_again(name: str) -> None:
    cluster = SimulatedCluster()
    cluster.evict("s-r")
    pod = cluster.pods.pop("s-r-again")
    assert not cluster.recreate_missing(CONSOLIDATION)
    cluster.create(pod)
    cluster.evict(name)
    assert cluster.recreate_missing(CONSOLIDATION)
    del cluster.pods[name]
    assert not cluster.recreate_missing(CONSOLIDATION)


def test_a_recreated_pod_of_an_ungated_gang_has_no_gate() -> None:
    cluster = SimulatedCluster()
    assert cluster.pods["s-b-w-0"]["spec"]["schedulingGates"] == [{"name": labels.GATE}]
    cluster.part.ungated_gangs.add("B")
    cluster.evict("s-b-w-0")
    assert cluster.recreate_missing(CONSOLIDATION) and not cluster.pods["s-b-w-0"]["spec"]["schedulingGates"]


def test_nothing_is_recreated_for_other_schedulers() -> None:
    cluster = SimulatedCluster()
    del cluster.pods["s-other"], cluster.pods["s-a-w-0"]
    assert not cluster.recreate_missing()
