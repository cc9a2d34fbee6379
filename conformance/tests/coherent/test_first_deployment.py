"""Tests of the first deployment of a set with the strategy Coherent, and of its deletion."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import labels, pods
from conformance.grove.coherent import shapes
from conformance.grove.coherent.model import shape
from conformance.grove.fields import items, label, name, text
from conformance.history.query import Predicate
from conformance.history.view import View
from conformance.suite.outcomes.checks import ABSENT
from conformance.suite.scenes.api import Object
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import ReplicasOfASet, SetUpdatedFourTimes
from conformance.tests.coherent.sets import CLIQUES, GANGS, TIMEOUT_SECONDS

FIRST_GANGS = sorted(["anchor {f5, d[0], p[0]}", "{p[1]}", "{p[2]}", "{p[3]}", "{d[1]}", "{d[2]}"])


@requirement("COHR-010")
def test_each_replica_has_a_map(run: Recorded[ReplicasOfASet]) -> None:
    """The set has three replicas."""
    run.given("deployed")
    indices = {name(gang_map): shapes.replica(gang_map) for gang_map in run.at("at rest").list(sets.MAPS)}
    run.expect("PodGangMaps, and their indices", {f"s-{index}": index for index in range(3)}, indices)


@requirement("COHR-011")
def test_the_first_gangs(run: Recorded[SetUpdatedFourTimes]) -> None:
    """It is not specified how many entries declare the gangs other than the anchor."""
    run.given("deployed")
    run.expect("gangs in the map", FIRST_GANGS, shape(sets.layout(run.at("at rest"), "s")))


@requirement("COHR-012")
def test_a_gang_for_each_entry(run: Recorded[SetUpdatedFourTimes]) -> None:
    """PodGroups have the names of PodCliques."""
    run.given("deployed")
    view = run.at("at rest")
    expected = {entry.key: sets.cliques_of(entry, "s-0") for entry in sets.layout(view, "s")}
    run.same("PodGroups", expected, {key: sorted(_groups(gang)) for key, gang in sets.gangs_by_key(view, "s").items()})


@requirement("COHR-013")
def test_anchors_are_marked(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The anchor is the entry that holds pods of the standalone clique."""
    run.given("deployed")
    view = run.at("at rest")
    entries = {entry.key: entry for entry in sets.layout(view, "s")}
    expected = {key: bool(entry.cliques) for key, entry in entries.items()}
    gangs = sets.gangs_by_key(view, "s")
    objects_with_mark = {key: shapes.is_anchor(gangs[key]) if key in gangs else ABSENT for key in entries}
    run.same("marked gangs", expected, objects_with_mark)
    run.same("entries without a dependency", expected, {key: not entry.dependent for key, entry in entries.items()})


@requirement("COHR-014")
def test_gangs_say_of_what_they_are(run: Recorded[SetUpdatedFourTimes]) -> None:
    """A gang has the generation hash of its entry."""
    run.given("deployed")
    view = run.at("at rest")
    expected = {entry.key: ("0", entry.generation) for entry in sets.layout(view, "s")}
    observed: dict[str, object] = dict.fromkeys(expected, ABSENT)
    for key, gang in sets.gangs_by_key(view, "s").items():
        if key in expected:
            observed[key] = (label(gang, labels.SET_INDEX), label(gang, labels.GENERATION_HASH))
    run.same("replica and generation of gangs", expected, observed)


@requirement("COHR-015")
def test_pods_name_their_gang(run: Recorded[SetUpdatedFourTimes]) -> None:
    """Pods are judged after the first deployment and after an update. References to pods are covered by GANG-002."""
    run.given("deployed")
    for step in ("at rest", "all: at rest"):
        view = run.at(step)
        gang_by_reference = {pod_name: name(gang) for gang in view.list(GANGS) for pod_name in _references(gang)}
        gang_by_pod = {name(pod): label(pod, labels.GANG) for pod in sets.pods_of_set(view, "s")}
        expected = {pod_name: gang_by_reference.get(pod_name, "") for pod_name in gang_by_pod}
        run.same(f"gangs of pods, {step}", expected, gang_by_pod)
        run.expect(f"gang of the clique f, {step}", "", label(view.get(CLIQUES, "s-0-f"), labels.GANG))


@requirement("COHR-018")
def test_gangs_are_scheduled_before_they_are_ready(run: Recorded[SetUpdatedFourTimes]) -> None:
    """Both conditions may be set in one write."""
    run.judge_violation()
    run.given("deployed")


TOO_MANY_CPUS = "20"
"""The number of CPUs requested by a pod that does not fit on a tiny node."""
ALIKE, BLOCKED = "s-0", "s-0-0"
"""Sets whose names are prefixes of the names of another set's gangs."""


class AnchorWithoutRoom(Scene):
    """A coherent set `s`, f1/1 d3/1 (replicas/minAvailable). At first the pod of f does not fit on any node, so the
    anchor does not fit, although the pods of d do. Two more sets have names that are prefixes of the names of gangs.
    `s-0-0` is created first, and its only pod does not fit. `s-0` (f1/1 d2/1) is created next, and all its pods fit.
    Then nodes for the anchors are added."""

    def play(self, env: SceneEnvironment) -> None:
        def pods_exist(counts: Mapping[str, int]) -> Predicate:
            return lambda view: {set_name: len(sets.pods_of_set(view, set_name)) for set_name in counts} == counts

        env.nodes("tiny", 1)
        env.create(_require_too_many_cpus(sets.set_manifest(env, "s", {"f": (1, 1)}, {"d": (3, 1)})))
        env.create(_require_too_many_cpus(sets.set_manifest(env, BLOCKED, {"f": (1, 1)})))
        env.wait_for("sets without room made", pods_exist({"s": 4, BLOCKED: 1}), TIMEOUT_SECONDS)
        env.create(sets.set_manifest(env, ALIKE, {"f": (1, 1)}, {"d": (2, 1)}))
        env.wait_for("all pods created", pods_exist({"s": 4, ALIKE: 3, BLOCKED: 1}), TIMEOUT_SECONDS)
        env.settle(f"{ALIKE}: deployed", sets.is_deployed(ALIKE), 30)
        env.quiet(2)
        env.settle(
            "sets without room unbound", lambda view: not _bound_pods(view, "s") and not _bound_pods(view, BLOCKED), 5
        )
        env.mark("room for the anchor")
        env.nodes("single", 2)
        env.wait_for("all bound", lambda view: len(_bound_pods(view)) == 4, TIMEOUT_SECONDS)


def _require_too_many_cpus(workload: Object) -> Object:
    """Make the pods of the set's first clique request more CPUs than a tiny node has. Return the set."""
    container = workload["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": TOO_MANY_CPUS}}
    return workload


@requirement("COHR-020", reaches="all bound")
def test_dependent_gangs_wait_for_their_anchor(run: Recorded[AnchorWithoutRoom]) -> None:
    """At first the pod of the anchor does not fit on any node, but the pods of the dependent gangs do."""
    run.given("all pods created")
    run.always("nothing else is bound before the anchor", _is_anchor_bound_first)
    gated = [name(pod) for pod in sets.pods_of_set(run.at("all bound"), "s") if pods.is_gated(pod)]
    run.expect("pods with a gate in the end", [], gated)


@requirement("COHR-096", reaches=f"{ALIKE}: deployed")
def test_anchors_of_other_sets_do_not_count(run: Recorded[AnchorWithoutRoom]) -> None:
    """The anchors of two other sets are not scheduled."""
    run.given("all pods created", "sets without room unbound")
    bound = len(_bound_pods(run.at("room for the anchor"), ALIKE))
    run.expect(f"bound pods of {ALIKE} while two anchors have no room", 3, bound)


@requirement("COHR-086", reaches="scaled in")
def test_maps_follow_the_replicas_of_the_set(run: Recorded[ReplicasOfASet]) -> None:
    """The set is scaled from three replicas to one."""
    run.given("deployed")
    before, after = run.at("at rest"), run.at("scaled in: at rest")
    run.expect("PodGangMaps after the scale-in", ["s-0"], after.names(sets.MAPS))
    run.expect("the gangs of s-0", shape(sets.layout(before, "s")), shape(sets.layout(after, "s")))


@requirement("COHR-087", reaches="deleted")
def test_everything_is_deleted_with_the_set(run: Recorded[ReplicasOfASet]) -> None:
    """PodGangMaps, PodGangs and pods may be deleted in any order."""
    run.given("scaled in")


test_invariants = invariants(AnchorWithoutRoom, "INV-018", "INV-021")


def _groups(gang: object) -> list[str]:
    return [text(group, "name") for group in items(gang, "spec", "podgroups")]


def _references(gang: object) -> list[str]:
    groups = items(gang, "spec", "podgroups")
    return [text(reference, "name") for group in groups for reference in items(group, "podReferences")]


def _is_anchor_bound_first(view: View) -> bool:
    """The pods of the anchor are bound, or no other pod is bound."""
    anchor, bound = {"s-0-f", "s-0-d-0-dm"}, set(_bound_pods(view))
    return anchor <= bound or not bound - anchor


def _bound_pods(view: View, set_name: str = "s") -> list[str]:
    """Return the PodClique of each bound pod of a set."""
    return [label(pod, labels.CLIQUE) for pod in sets.pods_of_set(view, set_name) if pods.is_bound(pod)]
