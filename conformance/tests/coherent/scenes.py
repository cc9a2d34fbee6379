"""Scenes of coherent updates that several test modules judge. A size such as f5/2 stands for replicas/minAvailable."""

from __future__ import annotations

from typing import Any

from conformance.grove import health, labels
from conformance.grove.fields import label, name, text, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Exclusive, Scene, SceneEnvironment
from conformance.testing.topology_bindings import topology_binding
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import CLIQUES, SETS, TIMEOUT_SECONDS

ALL, ONLY_GROUPS, ONLY_FRONT, ONE_MEMBER = "all", "groups", "front", "member"
CHANGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    ALL: (("f", "pl", "pw", "dm"), ("f", "p", "d")),
    ONLY_GROUPS: (("pw", "dm"), ("p", "d")),
    ONLY_FRONT: (("f",), ("f",)),
    ONE_MEMBER: (("pl",), ("p",)),
}
"""Update of the scene → the templates that it changes, and the components in its scope."""


class SetUpdatedFourTimes(Scene):
    """A coherent set, f5/2 p4/1 d3/1, with ample capacity. All components are changed, then the scaling groups, then
    the standalone clique, then one clique of a scaling group. Then the standalone clique is scaled out."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.workload = sets.set_manifest(env, "s", {"f": (5, 2)}, {"p": (4, 1), "d": (3, 1)})
        env.create(self.workload)
        env.wait_for("deployed", sets.is_deployed("s"), TIMEOUT_SECONDS)
        env.quiet(1)
        env.mark("at rest")
        for number in range(3):
            env.patch(SETS, "s", {"metadata": {"annotations": {"example.com/look": str(number)}}})
        env.quiet(1)
        env.mark("looked at again")
        for number, (update, (cliques, _)) in enumerate(CHANGES.items(), 2):
            env.mark(f"{update}: change")
            old_generation = sets.change_images(env, self.workload, *cliques, tag=str(number))
            env.wait_for(f"{update}: updated", sets.is_updated("s", old_generation), TIMEOUT_SECONDS)
            env.quiet(1)
            env.mark(f"{update}: at rest")
        env.patch(CLIQUES, "s-0-f", {"spec": {"replicas": 6}}, subresource="scale")
        env.wait_for("pods added", sets.is_followed("s", "f", 6), TIMEOUT_SECONDS)
        env.quiet(5.5, real=True)
        env.mark("end")


SHAPES: dict[str, tuple[sets.Sizes, sets.Sizes]] = {
    "alone": ({"f": (6, 2)}, {}),
    "grouped": ({}, {"g": (5, 2), "d": (4, 2)}),
    "whole": ({"f": (2, 2)}, {"g": (2, 2)}),
    "uneven": ({"f": (7, 3)}, {"g": (5, 2)}),
    "skewed": ({"f": (2, 1)}, {"g": (12, 2)}),
    "loose": ({"f": (7, 2, 3)}, {"g": (2, 1)}),
}
"""Set of SetsOfEveryShape → its standalone cliques and scaling groups with replicas, minAvailable, and maxUnavailable
if it exceeds minAvailable. Only the maxUnavailable of `loose` would permit a sub-step before the pods of the previous
sub-step are Ready."""


CONSTRAINED, ORDERED, SINGLE = "constrained", "ordered", "single"
LEVELS = {"zone": "topology.kubernetes.io/zone", "host": "kubernetes.io/hostname"}


class SetsOfEveryShape(Scene):
    """A set for each shape that a plan can have (see SHAPES), a set whose cliques start in order, a set with a priority
    class and (if supported) topology constraints, and (if supported) a set with the gang layout SingleAnchor. All sets
    are changed at the same time, with ample capacity. New pods of the first clique of the ordered set do not become
    Ready for two seconds."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.workloads = {set_name: sets.set_manifest(env, set_name, *sizes) for set_name, sizes in SHAPES.items()}
        binding = env.namespace if "topology" in env.implementation.features else ""
        self.workloads[CONSTRAINED] = _constrained_set(env, binding)
        in_order = "CliqueStartupTypeInOrder"
        self.workloads[ORDERED] = sets.set_manifest(
            env, ORDERED, {"f": (2, 1)}, {"d": (2, 1)}, cliqueStartupType=in_order
        )
        if "single-anchor" in env.implementation.features:
            self.workloads[SINGLE] = sets.set_manifest(env, SINGLE, {"f": (5, 2)}, {"g": (4, 1), "d": (3, 1)})
            self.workloads[SINGLE]["metadata"]["annotations"] = {"grove.io/coherent-gang-layout": "SingleAnchor"}
        self.constraint = {"packConstraint": {"preferred": LEVELS["host"]}} if binding else None
        if binding:
            env.create(topology_binding(binding, LEVELS))
        try:
            self._play(env)
        finally:
            if binding:
                env.delete("clustertopologybindings", binding)

    def _play(self, env: SceneEnvironment) -> None:
        for workload in self.workloads.values():
            env.create(workload)
        env.wait_for("deployed", all_of(*map(sets.is_deployed, self.workloads)), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("change")
        old_generations = {
            set_name: _change_all_cliques(env, workload, hold="f" * (set_name == ORDERED))
            for set_name, workload in self.workloads.items()
        }
        env.settle(f"{ORDERED}: pods of f wait", sets.has_held_pod(ORDERED), 60)
        env.quiet(2, real=True)
        env.mark(f"{ORDERED}: f released")
        sets.release_all(env, {ORDERED: old_generations[ORDERED]})
        for set_name, generation in old_generations.items():
            env.settle(f"{set_name}: updated", sets.is_updated(set_name, generation), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("end")


def _constrained_set(env: SceneEnvironment, binding: str) -> Object:
    constraint: dict[str, Any] = (
        {"topologyConstraint": {"topologyName": binding, "pack": {"preferred": "host"}}} if binding else {}
    )
    priority_class = "system-cluster-critical"
    return sets.set_manifest(
        env, CONSTRAINED, {"f": (2, 1)}, {"d": (2, 1)}, priorityClassName=priority_class, **constraint
    )


def _change_all_cliques(env: SceneEnvironment, workload: Object, tag: str = "2", hold: str = "") -> str:
    cliques = [clique["name"] for clique in workload["spec"]["template"]["cliques"]]
    return sets.change_images(env, workload, *cliques, tag=tag, hold=tuple(hold))


class OperatorKilled(Scene):
    """A set with two replicas, f2/1 p2/1, with ample capacity. It is changed while the operator is down or, if
    admission accepts nothing at that time, right before the operator is killed. The operator is killed twice more
    during the update."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.workload = sets.set_manifest(env, "s", {"f": (2, 1)}, {"p": (2, 1)}, replicas=2)
        env.create(self.workload)
        env.wait_for("deployed", sets.is_deployed("s", 2), TIMEOUT_SECONDS)
        env.quiet(0.7)
        self.initial_pods = sets.clique_by_uid(sets.pods_of_set(env.history.view(), "s"))
        env.mark("change")
        old_generation = self._change(env)
        for fraction in sorted(env.random.uniform(0, 0.9) for _ in range(2)):
            lost_pods = int(fraction * len(self.initial_pods))
            env.settled(f"more than {lost_pods} pods are deleted", sets.has_lost_pods(self.initial_pods, lost_pods))
            env.roles.kill("operator")
            env.roles.restart("operator")
        env.wait_for("updated", sets.is_updated("s", old_generation), TIMEOUT_SECONDS)
        env.quiet(5.5, real=True)
        env.mark("end")

    def _change(self, env: SceneEnvironment) -> str:
        with env.roles.unrest():  # the operator may be down for a long time
            return self._change_while_down(env)

    def _change_while_down(self, env: SceneEnvironment) -> str:
        env.roles.kill("operator")
        annotation_patch = {"metadata": {"annotations": {"example.com/look": "1"}}}
        [reply] = env.dry_run.all([env.dry_run.patch(SETS, "s", annotation_patch)])
        if reply.accepted:
            old_generation = _change_all_cliques(env, self.workload)
        else:
            env.roles.restart("operator")
            old_generation = _change_all_cliques(env, self.workload)
            env.roles.kill("operator")
        env.roles.restart("operator")
        return old_generation


class ScaledAfterAnUpdate(Scene):
    """A set f4/2 p4/1 whose gangs were formed by an update. It is scaled out, scaled in, and scaled in to its minimum.
    Then p gets a second replica, and f loses the pods of all anchors but one. Finally the replica of the set is
    terminated, because three of its four pods of f have failed for longer than terminationDelay."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.workload = sets.set_manifest(env, "s", {"f": (4, 2)}, {"p": (4, 1)})
        env.create(self.workload)
        env.wait_for("deployed", sets.is_deployed("s"), TIMEOUT_SECONDS)
        old_generation = _change_all_cliques(env, self.workload)
        env.wait_for("updated", sets.is_updated("s", old_generation), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("at rest")
        self._scale(env, "replicas added", p=6)
        self._scale(env, "pods added", f=6)
        self._scale(env, "replicas removed", p=3)
        self._scale(env, "one replica added again", p=4)
        self._scale(env, "least replicas", p=1)
        env.settle("empty gangs deleted", sets.has_only_gangs_of_entries("s"))
        self._scale(env, "two replicas", p=2)
        self._fail(env)
        self._scale(env, "pods removed", f=2)
        self._scale(env, "pods of the template", f=4)  # recreated cliques have this many pods
        disruption.set_termination_delay(env, ["s"], "2s")
        self.initial_pods = sets.clique_by_uid(sets.pods_of_set(env.history.view(), "s"))
        disruption.set_pod_states(env, "s-0-f", disruption.CRASHED, 3)
        env.settle("terminated", sets.has_lost_pods(self.initial_pods, len(self.initial_pods) - 1), TIMEOUT_SECONDS)
        env.settle("terminated and recovered", sets.is_recreated("s", self.initial_pods), TIMEOUT_SECONDS)
        env.quiet(5.5, real=True)
        env.mark("end")

    def _fail(self, env: SceneEnvironment) -> None:
        """Fail all pods of f that are in the gang of its newest pod."""
        members = predicates.pods_of(env.history.view(), "s-0-f")
        gang = label(max(members, key=lambda pod: text(pod, "metadata", "creationTimestamp")), labels.GANG)
        failed = [pod for pod in members if label(pod, labels.GANG) == gang]
        for pod in failed:
            env.patch("pods", name(pod), {"metadata": {"annotations": {sets.HOLD_STATUS: "yes"}}})
            env.patch("pods", name(pod), health.status(pod, disruption.CRASHED), subresource="status")
        env.wait_for("pods not Ready", sets.reports_ready_pods("s-0-f", len(members) - len(failed)))
        self.unready_pod = {uid(pod) for pod in failed}

    def _scale(self, env: SceneEnvironment, step: str, **sizes: int) -> None:
        """Scale one component through the scale subresource, and wait until everything is Ready."""
        for component, size in sizes.items():
            resource = CLIQUES if component == "f" else sets.GROUPS
            env.patch(resource, f"s-0-{component}", {"spec": {"replicas": size}}, subresource="scale")
            if component == "f":
                env.wait_for(f"{step}: number of pods", _pods_of_f(size), TIMEOUT_SECONDS)
            else:
                env.wait_for(f"{step}: in the map", sets.map_holds("s", component, size), TIMEOUT_SECONDS)
            env.wait_for(step, sets.is_followed("s", component, size), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark(f"{step}: at rest")


@predicate
def _pods_of_f(view: View, size: int) -> bool | Unmet:
    members = predicates.pods_of(view, "s-0-f")
    return len(members) == size or Unmet(f"f has {len(members)} pods, not {size}")


class ReplicasOfASet(Scene):
    """A set with three replicas that is scaled in to one replica, and then deleted."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workload = sets.set_manifest(env, "s", {"f": (2, 1)}, {"d": (2, 1)}, replicas=3)
        env.create(workload)
        env.wait_for("deployed", sets.is_deployed("s", 3), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("at rest")
        env.patch(SETS, name(workload), {"spec": {"replicas": 1}})
        env.wait_for("scaled in", lambda view: len(view.names(sets.MAPS)) <= 1, 60)
        env.quiet(0.7)
        env.mark("scaled in: at rest")
        env.delete(SETS, name(workload))
        resources = (SETS, "pods", sets.GANGS, sets.MAPS)
        env.wait_for("deleted", lambda view: not any(map(view.names, resources)), 150)
        env.quiet(0.7)
        env.mark("end")
