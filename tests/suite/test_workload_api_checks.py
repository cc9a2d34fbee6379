"""Checks of the profile workload-api that no scheduler at hand breaks: each judges a history in which it is broken.

That a step which does not come fails what reaches it is tested in test_reaches.py; what breaks where gates are missing,
in test_workload_api.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from conformance.grove.scheduling import manifests
from conformance.history.log import Log
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED, Record
from conformance.suite import ledger
from conformance.suite.checks import Checks
from conformance.suite.recorded import Recorded
from conformance.suite.scene import Played, Scene, Step
from conformance.testing.benches import BLOCK, RACK, Bench
from conformance.testing.workload_groups import Leaf, Tree
from conformance.tests.workload_api import test_competition as competition
from conformance.tests.workload_api import test_life_cycle as life_cycle
from conformance.tests.workload_api import test_preemption as preemption
from conformance.tests.workload_api import test_priorities as priorities
from conformance.tests.workload_api import test_topology as topology

Judge = Callable[[Recorded[Any]], None]


class Told:
    """A history that is told step by step, for one bench."""

    def __init__(self, name: str) -> None:
        def testbed(prefix: str) -> manifests.Testbed:
            return manifests.Testbed("ns", f"pool-{prefix}", "default-scheduler", prefix=prefix)

        env: Any = SimpleNamespace(
            namespace="ns",
            implementation=SimpleNamespace(scheduler_name="default-scheduler"),
            testbed=testbed,
            served=lambda kind: "scheduling.k8s.io/v1beta1",
        )
        self.bench = Bench(env, name)
        self.records: list[Record] = []
        self.steps: dict[str, Step] = {}

    def tell(self, resource: str, name: str, obj: Mapping[str, Any], kind: str = ADDED) -> None:
        """Add a record of an object."""
        number = len(self.records) + 1
        metadata = {"name": name, "namespace": "ns", "uid": name, **obj.get("metadata", {})}
        raw = orjson.dumps({**obj, "metadata": metadata})
        space = "" if resource == "nodes" else "ns"
        record = Record(
            seq=number, at=float(number), wall=float(number), kind=kind, resource=resource, namespace=space, name=name,
            uid=name, version=str(number), raw=raw,
        )  # fmt: skip
        self.records.append(record)

    def pod(self, leaf: Leaf | None, index: int | str, node: str = "", kind: str = ADDED, nominated: str = "") -> None:
        """Add a pod of a group, or one of no group by its name."""
        name = self.bench.place.name(leaf.name, index) if leaf else self.bench.place.name(index)
        spec: dict[str, Any] = {"nodeName": node} if node else {}
        if leaf:
            spec["schedulingGroup"] = {"podGroupName": self.bench.place.name(leaf.name)}
        labels = dict(self.bench.place.labels)
        status = {"nominatedNodeName": nominated} if nominated else {}
        self.tell("pods", name, {"metadata": {"labels": labels}, "spec": spec, "status": status}, kind)

    def node(self, name: str, rack: str, block: str = "one") -> None:
        """Add a node."""
        self.tell("nodes", name, {"metadata": {"labels": {RACK: rack, BLOCK: block}}})

    def mark(self, step: str) -> None:
        """Mark a step."""
        number = len(self.records)
        self.steps[step] = Step(step, number, None, float(number))

    def judged(self, judge: Judge, scene: Scene) -> list[str]:
        """Return the outcomes of the checks of a test."""
        log = Log()
        log.restore(self.records, float(len(self.records)))
        history = History(log, "ns")
        history.end()
        made: list[ledger.Check] = []
        [mark] = [each for each in judge.pytestmark if each.name == "requirements"]  # type: ignore[attr-defined]
        checks = Checks("t", mark.args, made.append)
        run = Recorded(Played("s", scene, history, self.steps, {}), scene, checks, mark.kwargs["reaches"])
        judge(run)
        return [check.outcome for check in made if check.what not in self.steps]


def minimum_raised(told: Told, wrong: bool) -> tuple[Judge, Scene]:
    scene = life_cycle.ChangedMinimum()
    scene.running, scene.pair = told.bench, Leaf("g", 2, 2)
    for index in range(2):
        told.pod(scene.pair, index, "n")
    told.mark("pair bound")
    if wrong:
        told.pod(scene.pair, 0, "n", DELETED)
    told.mark("minimum raised")
    return life_cycle.test_a_higher_minimum_leaves_running_pods_alone, scene


def nominated(told: Told, wrong: bool) -> tuple[Judge, Scene]:
    scene = competition.HopelessGang()
    scene.bench, scene.gang = told.bench, Leaf("g", 1, 1)
    told.pod(scene.gang, 0, nominated="n" if wrong else "")
    told.mark("at rest")
    return competition.test_no_node_stays_nominated_for_a_gang_that_failed, scene


def never_preempting(told: Told, wrong: bool) -> tuple[Judge, Scene]:
    scene = priorities.NoPreemption()
    scene.never = told.bench
    told.pod(None, "victim", "n")
    told.mark("low Pod bound")
    if wrong:
        told.pod(None, "victim", "n", DELETED)
    told.mark("tried")
    return priorities.test_a_gang_that_must_not_preempt_evicts_nobody, scene


def free_room(told: Told, wrong: bool) -> tuple[Judge, Scene]:
    scene = preemption.VictimsOfGangs()
    scene.free = told.bench
    told.pod(None, "x", "n")
    told.mark("low Pods of free bound")
    if wrong:
        told.pod(None, "x", "n", DELETED)
    told.mark("gang with free room bound")
    told.mark("room was enough")
    return preemption.test_a_gang_that_fits_evicts_nobody, scene


def one_rack(told: Told, wrong: bool) -> tuple[Judge, Scene]:
    scene = topology.MorePodsInARack()
    scene.bench, scene.gang, scene.all = told.bench, Leaf("g", 2, 2, key=RACK), Leaf("g", 3, 2, key=RACK)
    told.node("a0", "a")
    told.node("b0", "b")
    told.pod(scene.gang, 0, "a0")
    told.mark("gang bound")
    told.pod(scene.gang, 1, "b0" if wrong else "a0")
    told.mark("all bound")
    return topology.test_extra_pods_stay_in_the_domain, scene


def rack_of_low_priority(told: Told, wrong: bool) -> tuple[Judge, Scene]:
    scene = topology.PreemptionInARack()
    scene.bench, scene.gang = told.bench, Leaf("g", 2, 2, key=RACK)
    for each in ("a0", "a1"):
        told.pod(None, each, each)
    told.node("b0", "b")
    told.node("b1", "c" if wrong else "b")
    told.mark("racks full")
    for index in range(2):
        told.pod(scene.gang, index, f"b{index}")
    told.mark("gang bound")
    return topology.test_a_gang_evicts_within_its_domain, scene


def one_block(told: Told, wrong: bool) -> tuple[Judge, Scene]:
    scene = topology.TreeInABlock()
    scene.bench, scene.leaves = told.bench, [Leaf("p", 1, 1, key=RACK), Leaf("d", 1, 1, key=RACK)]
    scene.tree = Tree("root", scene.leaves, 2, BLOCK)
    told.node("n0", "a")
    told.node("n1", "b", "two" if wrong else "one")
    told.mark("rack full")
    for index, leaf in enumerate(scene.leaves):
        told.pod(leaf, 0, f"n{index}")
    told.mark("tree bound")
    return topology.test_domains_of_children_are_within_that_of_the_parent, scene


STORIES = (minimum_raised, nominated, never_preempting, free_room, one_rack, rack_of_low_priority, one_block)


@pytest.mark.parametrize("wrong", [False, True], ids=["kept", "broken"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_check_fails_where_the_promise_is_broken(
    story: Callable[[Told, bool], tuple[Judge, Scene]], wrong: bool
) -> None:
    told = Told("b")
    judge, scene = story(told, wrong)
    assert ("failed" in told.judged(judge, scene)) is wrong
