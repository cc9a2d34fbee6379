"""Tests of moving pods away from a node under OnDelete, and of a strategy that is switched back and forth."""

from __future__ import annotations

from conformance.grove import updates
from conformance.grove.fields import at, items, name, number, text, texts, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import predicates, replay
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS, SETS

SIZES = {
    "o-0-a": 3,
    "o-0-q": 1,
    **{f"o-0-g-{j}-{clique}": size for j in (0, 1) for clique, size in (("b", 1), ("c", 2))},
}
CLIQUE = "o-0-a"
CHANGED_PARTS = [(CLIQUES, CLIQUE)]
"""The resource and name of each object that the affinity change affects. The reports of other objects are covered by
UPD-056."""
HOSTNAME = "kubernetes.io/hostname"
REQUIRED_AFFINITY_PATH = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


class StrategySwitchedTwice(Scene):
    """Two nodes, and a set with OnDelete. A clique gets a node affinity that excludes one of the nodes, and its pods on
    that node are deleted. Then the strategy is switched to RollingRecreate, and a clique is changed. Then the strategy
    is switched back to OnDelete, and other cliques are changed."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 2)
        workload = env.workload("rolling", setName="o", alone=3, aloneMinAvailable=1)
        workload["spec"]["updateStrategy"] = {"type": changes.ON_DELETE}
        env.create(workload)
        env.wait_for("set available", predicates.is_available("o", 1))
        env.wait_for("all pods Ready", all_of(pods_are(SIZES, ready=True), changes.report_ready(SIZES)))
        env.quiet(0.7)
        pods = predicates.pods_of(env.history.view(), CLIQUE)
        self.excluded = text(pods[0], "spec", "nodeName")
        self.lost = {uid(pod) for pod in pods if text(pod, "spec", "nodeName") == self.excluded}
        env.mark("affinity: change")
        before = updates.generation_hash(env.history.view().get(SETS, "o"))
        terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "NotIn", "values": [self.excluded]}]}]
        affinity = {"nodeAffinity": {REQUIRED_AFFINITY_PATH[2]: {REQUIRED_AFFINITY_PATH[3]: terms}}}
        changes.template(workload, "a")["spec"]["podSpec"]["affinity"] = affinity
        changes.apply(env, workload)
        env.settle(
            "affinity: end reported",
            all_of(changes.has_started("o", before), changes.have_parts_ended("o", CHANGED_PARTS)),
            60,
        )
        env.quiet(1.5, real=True)
        env.mark("affinity: at rest")
        for pod in pods:
            if uid(pod) in self.lost:
                env.delete("pods", name(pod))
        deleted_pods = changes.are_deleted(CLIQUE, self.lost)
        env.wait_for("affinity: deleted pods replaced", all_of(deleted_pods, pods_are({CLIQUE: 3}, ready=True)))
        env.wait_for("affinity: replacements counted as Ready", changes.report_ready({CLIQUE: 3}))
        env.quiet(0.7)
        env.mark("affinity: replaced")

        self._switch(env, changes.ROLLING)
        before = changes.change_image(env, workload, "q", tag="2")
        env.wait_for("RollingRecreate: update ended", changes.has_ended("o", before), 90)
        env.wait_for(
            "RollingRecreate: all pods Ready", all_of(pods_are(SIZES, ready=True), changes.report_ready(SIZES))
        )
        self._switch(env, changes.ON_DELETE)
        env.quiet(0.7)
        env.mark("OnDelete again: change")
        before = changes.change_image(env, workload, "a", "c", tag="3")
        ended = changes.have_parts_ended("o", [*CHANGED_PARTS, (GROUPS, "o-0-g")])
        env.settle("OnDelete again: end reported", all_of(changes.has_started("o", before), ended), 60)
        env.quiet(1.5, real=True)
        env.mark("OnDelete again: at rest")

    def _switch(self, env: SceneEnvironment, strategy_type: str) -> None:
        changes.set_strategy(env, "o", strategy_type)
        env.settled(f"the switch to {strategy_type} has been observed", _is_observed)


@requirement("UPD-038", reaches="affinity: end reported")
def test_an_affinity_deletes_no_pod(run: Recorded[StrategySwitchedTwice]) -> None:
    """Pods on a node that the new affinity excludes stay as well."""
    _expect_nothing_deleted(run, "affinity")


@requirement("UPD-040", reaches="affinity: deleted pods replaced")
def test_replacements_have_the_new_affinity(run: Recorded[StrategySwitchedTwice]) -> None:
    """In this way, an administrator can move a few pods away from a failing node."""
    run.given("all pods Ready", "affinity: end reported")
    before, after = run.at("affinity: at rest"), run.at("affinity: replaced")
    expected = {name(pod): [run.scene.excluded] for pod in _new_pods(before, after)}
    run.same(
        "nodes that the replacements exclude",
        expected,
        {name(pod): _excluded_nodes(pod) for pod in _new_pods(before, after)},
    )
    unchanged = {
        clique: changes.uids(before, clique) - run.scene.lost <= changes.uids(after, clique) for clique in SIZES
    }
    run.same("cliques that keep their other pods", dict.fromkeys(unchanged, True), unchanged)


@requirement("SCHED-088")
def test_replacements_run_elsewhere(run: Recorded[StrategySwitchedTwice]) -> None:
    """The excluded node has room for the replacements."""
    run.given("affinity: deleted pods replaced")
    after = run.at("affinity: replaced")
    pods = [pod for pod in predicates.pods_of(after, CLIQUE) if run.scene.excluded in _excluded_nodes(pod)]
    misplaced = [name(pod) for pod in pods if text(pod, "spec", "nodeName") == run.scene.excluded]
    run.expect("pods on the node that their affinity excludes", [], misplaced)


@requirement("UPD-038", reaches="OnDelete again: end reported")
def test_a_second_switch_restores_on_delete(run: Recorded[StrategySwitchedTwice]) -> None:
    """The updates under RollingRecreate in between are not judged."""
    run.given("RollingRecreate: update ended", "RollingRecreate: all pods Ready")
    _expect_nothing_deleted(run, "OnDelete again")


test_invariants = invariants(StrategySwitchedTwice, "INV-001", "INV-004", "INV-005")


def _expect_nothing_deleted(run: Recorded[StrategySwitchedTwice], change: str) -> None:
    span = run.between(f"{change}: change", f"{change}: at rest")
    run.expect("pods that were deleted", [], [record.name for record in replay.deletions(span)])


def _new_pods(before: View, after: View) -> list[changes.Pod]:
    former_uids = changes.uids(before, CLIQUE)
    return [pod for pod in predicates.pods_of(after, CLIQUE) if uid(pod) not in former_uids]


def _excluded_nodes(pod: changes.Pod) -> list[str]:
    """Return the nodes that the affinity of a pod excludes."""
    expressions = [
        match for term in items(pod, "spec", *REQUIRED_AFFINITY_PATH) for match in items(term, "matchExpressions")
    ]
    return [value for match in expressions if text(match, "operator") == "NotIn" for value in texts(match, "values")]


def _is_observed(view: View) -> bool | Unmet:
    pcs = view.get(SETS, "o")
    observed = number(pcs, "status", "observedGeneration") == at(pcs, "metadata", "generation")
    return observed or Unmet("the set's present generation is not observed")
