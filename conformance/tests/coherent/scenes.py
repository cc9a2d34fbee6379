"""What is played in this profile: scenes that several modules judge."""

from __future__ import annotations

from typing import Any

from conformance.grove.fields import name
from conformance.suite.api import Object
from conformance.testing.observed import all_of
from conformance.testing.scene import Scene, SceneEnvironment
from conformance.testing.topology_bindings import topology_binding
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import CLIQUES, SECONDS, SETS

ALL, ONLY_GROUPS, ONLY_FRONT, ONE_MEMBER = "all", "groups", "front", "member"
CHANGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    ALL: (("f", "pl", "pw", "dm"), ("f", "p", "d")),
    ONLY_GROUPS: (("pw", "dm"), ("p", "d")),
    ONLY_FRONT: (("f",), ("f",)),
    ONE_MEMBER: (("pl",), ("p",)),
}
"""Updates of the scene: the templates that they change, and the components in their scope."""


class SetUpdatedFourTimes(Scene):
    """A coherent set, f5/2 p4/1 d3/1, and nothing scarce. All components are changed, then the scaling groups, then the
    standalone clique, then one clique of a scaling group."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.workload = sets.coherent(env, "s", {"f": (5, 2)}, {"p": (4, 1), "d": (3, 1)})
        env.create(self.workload)
        env.wait_for("deployed", sets.deployed("s"), SECONDS)
        env.quiet(1)
        env.mark("at rest")
        for number in range(3):
            env.patch(SETS, "s", {"metadata": {"annotations": {"example.com/look": str(number)}}})
        env.quiet(1)
        env.mark("looked at again")
        for number, (each, (cliques, _)) in enumerate(CHANGES.items(), 2):
            env.mark(f"{each}: change")
            before = sets.change(env, self.workload, *cliques, tag=str(number))
            env.wait_for(f"{each}: updated", sets.updated("s", before), SECONDS)
            env.quiet(1)
            env.mark(f"{each}: at rest")
        env.quiet(5.5, real=True)
        env.mark("end")


SHAPES: dict[str, tuple[sets.Sizes, sets.Sizes]] = {
    "alone": ({"f": (6, 2)}, {}),
    "grouped": ({}, {"g": (5, 2), "d": (4, 2)}),
    "whole": ({"f": (2, 2)}, {"g": (2, 2)}),
    "uneven": ({"f": (7, 3)}, {"g": (5, 2)}),
    "skewed": ({"f": (2, 1)}, {"g": (12, 2)}),
}
"""Standalone cliques and scaling groups of the sets of the next scene: replicas, and minAvailable."""


CONSTRAINED, SINGLE = "constrained", "single"
LEVELS = {"zone": "topology.kubernetes.io/zone", "host": "kubernetes.io/hostname"}


class SetsOfEveryShape(Scene):
    """A set for each shape that a plan can have (see SHAPES), one with a priority class and, where they are supported,
    topology constraints, and one with the gang layout SingleAnchor, where that is supported. All are changed at once,
    and nothing is scarce."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.workloads = {each: sets.coherent(env, each, *sizes) for each, sizes in SHAPES.items()}
        binding = env.namespace if "topology" in env.implementation.features else ""
        self.workloads[CONSTRAINED] = _constrained(env, binding)
        if "single-anchor" in env.implementation.features:
            self.workloads[SINGLE] = sets.coherent(env, SINGLE, {"f": (5, 2)}, {"g": (4, 1), "d": (3, 1)})
            self.workloads[SINGLE]["metadata"]["annotations"] = {"grove.io/coherent-gang-layout": "SingleAnchor"}
        self.scheduler = env.implementation.scheduler_name
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
        env.wait_for("deployed", all_of(*map(sets.deployed, self.workloads)), SECONDS)
        env.quiet(0.7)
        env.mark("change")
        before = {each: _change_all(env, workload) for each, workload in self.workloads.items()}
        for each, generation in before.items():
            env.settle(f"{each}: updated", sets.updated(each, generation), SECONDS)
        env.quiet(0.7)
        env.mark("end")


def _constrained(env: SceneEnvironment, binding: str) -> Object:
    wanted: dict[str, Any] = (
        {"topologyConstraint": {"topologyName": binding, "pack": {"preferred": "host"}}} if binding else {}
    )
    priority = "system-cluster-critical"
    return sets.coherent(env, CONSTRAINED, {"f": (2, 1)}, {"d": (2, 1)}, priorityClassName=priority, **wanted)


def _change_all(env: SceneEnvironment, workload: Object, tag: str = "2") -> str:
    cliques = [each["name"] for each in workload["spec"]["template"]["cliques"]]
    return sets.change(env, workload, *cliques, tag=tag)


class OperatorKilled(Scene):
    """A set with two replicas, f2/1 p2/1, and nothing scarce. The operator is killed three times while it updates."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.workload = sets.coherent(env, "s", {"f": (2, 1)}, {"p": (2, 1)}, replicas=2)
        env.create(self.workload)
        env.wait_for("deployed", sets.deployed("s", 2), SECONDS)
        env.quiet(0.7)
        self.first = sets.uids(sets.of_set(env.history.view(), "s"))
        env.mark("change")
        before = _change_all(env, self.workload)
        for share in sorted(env.random.uniform(0, 0.9) for _ in range(3)):
            lost = int(share * len(self.first))
            env.settled(f"more than {lost} pods are deleted", sets.lost(self.first, lost))
            env.roles.kill("operator")
            env.roles.restart("operator")
        env.wait_for("updated", sets.updated("s", before), SECONDS)
        env.quiet(5.5, real=True)
        env.mark("end")


class ScaledAfterAnUpdate(Scene):
    """A set f4/2 p4/1, whose gangs an update has formed: scaled out, in, and in to the least that is permitted."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.workload = sets.coherent(env, "s", {"f": (4, 2)}, {"p": (4, 1)})
        env.create(self.workload)
        env.wait_for("deployed", sets.deployed("s"), SECONDS)
        before = _change_all(env, self.workload)
        env.wait_for("updated", sets.updated("s", before), SECONDS)
        env.quiet(0.7)
        env.mark("at rest")
        self._scale(env, "replicas added", p=6)
        self._scale(env, "pods added", f=6)
        self._scale(env, "replicas removed", p=3)
        self._scale(env, "one replica added again", p=4)
        pod = sets.newest(env.history.view(), "s-0-f")
        env.patch("pods", pod, {"metadata": {"annotations": {sets.HOLD_STATUS: "yes"}}})
        env.patch("pods", pod, sets.not_ready(env.history.view(), pod), subresource="status")
        env.wait_for("one pod not Ready", sets.reported_ready("s-0-f", 5))
        self.unready = sets.uid_of(env.history.view(), pod)
        self._scale(env, "pods removed", f=2)
        self._scale(env, "least replicas", p=1)
        env.quiet(5.5, real=True)
        env.mark("end")

    def _scale(self, env: SceneEnvironment, step: str, **sizes: int) -> None:
        """Scales one part, through the scale subresource, and waits until everything has followed."""
        for each, size in sizes.items():
            kind = CLIQUES if each == "f" else sets.GROUPS
            env.patch(kind, f"s-0-{each}", {"spec": {"replicas": size}}, subresource="scale")
            env.wait_for(step, sets.followed("s", each, size), SECONDS)
        env.quiet(0.7)
        env.mark(f"{step}: at rest")


class ReplicasOfASet(Scene):
    """A set with three replicas that is scaled in to one, and then deleted."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workload = sets.coherent(env, "s", {"f": (2, 1)}, {"d": (2, 1)}, replicas=3)
        env.create(workload)
        env.wait_for("deployed", sets.deployed("s", 3), SECONDS)
        env.quiet(0.7)
        env.mark("at rest")
        env.patch(SETS, name(workload), {"spec": {"replicas": 1}})
        env.wait_for("scaled in", lambda view: len(view.names(sets.MAPS)) <= 1, 60)
        env.quiet(0.7)
        env.mark("scaled in: at rest")
        env.delete(SETS, name(workload))
        env.wait_for("deleted", lambda view: not (view.names(SETS) or view.names("pods") or view.names(sets.GANGS)))
        env.quiet(0.7)
        env.mark("end")
