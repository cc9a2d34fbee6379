"""Topology constraints on some levels only, by two bindings at a time, and a binding that comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from conformance.grove import expected_topology, labels
from conformance.grove.expected import Expected, Gang, expected
from conformance.grove.expected_topology import Levels, Placement
from conformance.grove.fields import condition, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import composition, observed, predicates
from conformance.testing.comparison import of
from conformance.testing.scaled import scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.topology_bindings import topology_binding

LEVELS = {domain: f"example.com/{domain}" for domain in ("zone", "block", "rack", "host")}
"""Domain → node label key, from wide to narrow."""
OTHER_LEVELS = {domain: f"other.example.com/{domain}" for domain in LEVELS}
"""The same domains by other node labels."""
Pack = Mapping[str, str]
SET, GROUP, CLIQUE = "set", "group", "clique"
PARTS: Mapping[str, Mapping[str, Pack]] = {
    "none": {},
    "set-alone": {SET: {"required": "zone"}},
    "group-alone": {GROUP: {"required": "rack"}},
    "clique-alone": {CLIQUE: {"required": "host"}},
    "set-and-clique": {SET: {"required": "block"}, CLIQUE: {"required": "host"}},
    "group-and-clique": {GROUP: {"required": "rack"}, CLIQUE: {"required": "host"}},
    "preferring": {SET: {"required": "block", "preferred": "rack"}, GROUP: {"preferred": "host"}},
    "elsewhere": {SET: {"required": "block"}, GROUP: {"required": "rack"}, CLIQUE: {"required": "host"}},
}
"""Sets, each with the constraints of its levels. The last one names another binding than the others."""
ELSEWHERE = "elsewhere"


class ConstraintsOfSomeLevels(Scene):
    """Two ClusterTopologyBindings with the same domains and different node labels, and sets of which each has
    constraints on other levels (see PARTS). No nodes: no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        self.binding, other = env.namespace, f"{env.namespace}-other"
        self.workloads = {each: _workload(env, each, self._named(each), parts) for each, parts in PARTS.items()}
        self.wanted = {each: expected(workload) for each, workload in self.workloads.items()}
        env.create(topology_binding(self.binding, LEVELS))
        try:
            env.create(topology_binding(other, OTHER_LEVELS))
            try:
                for workload in self.workloads.values():
                    env.create(workload)
                every = [clique for wanted in self.wanted.values() for clique in wanted.cliques]
                env.wait_for("gangs exist", composition.all_held(every))
                env.settled("gangs have their constraints", self._translated, 30)
                env.quiet(1)
                env.mark("nothing moves")
            finally:
                env.delete("clustertopologybindings", other)
        finally:
            env.delete("clustertopologybindings", self.binding)

    def _named(self, each: str) -> str:
        return f"{self.binding}-other" if each == ELSEWHERE else self.binding

    def constraints(self, each: str, view: View) -> tuple[dict[str, Placement], dict[str, object]]:
        """The constraints that the gangs of a set must have, and those that they have. A scaled gang of a group without
        a constraint is left out if the set has one (RES-062)."""
        wanted = composition.by_composition(self.wanted[each], view)
        right = expected_topology.placements(self.workloads[each], wanted, _levels(each))
        judged = [gang for gang in wanted.gangs.values() if not _inherits(wanted, gang, PARTS[each])]
        found = {gang.name: view.get("podgangs", gang.name) for gang in judged}
        seen: dict[str, object] = {name: of(gang, expected_topology.seen(gang)) for name, gang in found.items()}
        return {name: replace(right[name], inherited=False) for name in found}, seen

    def _translated(self, view: View) -> bool:
        pairs = [self.constraints(each, view) for each in PARTS]
        return all(right == seen for right, seen in pairs)


class BindingThatComesBack(Scene):
    """A set with constraints and without replicas. Its ClusterTopologyBinding is deleted, it gets a replica and loses
    it again, and the binding is created once more. No nodes: no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        binding = env.namespace
        workload = env.workload("packed", setName="none", binding=binding)
        self.wanted = expected(workload)
        workload["spec"]["replicas"] = 0
        env.create(topology_binding(binding, LEVELS))
        try:
            env.create(workload)
            env.settle("all levels reported available", _reported({"False"}), 60)
            env.quiet(1)  # nothing but the deletion of the binding is to have the operator reconcile the set
        finally:
            env.delete("clustertopologybindings", binding)
        env.settle("missing binding reported", _reported({"True", "Unknown"}), 60)
        scale(env, "podcliquesets", "none", 1)
        env.settle("gangs of the new replica exist", composition.all_held(self.wanted.cliques), 60)
        env.settle("pods of the new replica exist", predicates.all_exist(list(self.wanted.cliques.values())), 60)
        env.quiet(1)
        env.mark("new replica at rest")
        scale(env, "podcliquesets", "none", 0)
        env.settled("the new replica is gone", observed.absent("podcliques", self.wanted.cliques), 60)
        env.create(topology_binding(binding, LEVELS))
        try:
            env.settle("all levels reported available again", _reported({"False"}), 60)
        finally:
            env.delete("clustertopologybindings", binding)


@requirement("RES-060")
@pytest.mark.parametrize("each", PARTS)
def test_constraints_of_some_levels_are_translated(run: Recorded[ConstraintsOfSomeLevels], each: str) -> None:
    """A level needs no constraint above or below it, and a domain is the node label that the set's own binding has for
    it."""
    run.given("gangs exist")
    run.same(f"constraints of the gangs of {each}", *run.scene.constraints(each, run.at("nothing moves")))


@requirement("RES-061")
def test_gangs_name_the_binding_of_their_set(run: Recorded[ConstraintsOfSomeLevels]) -> None:
    """With two bindings in the cluster, and whichever level has the constraint."""
    view = run.at("nothing moves")
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for each in PARTS:
        placements, _ = run.scene.constraints(each, view)
        for gang, placement in placements.items():
            if placement.any:
                right[gang] = f"{run.scene.binding}-other" if each == ELSEWHERE else run.scene.binding
                found = view.get("podgangs", gang)
                seen[gang] = of(found, observed.annotation(found, labels.TOPOLOGY))
    run.same("the bindings that gangs name", right, seen)


@requirement("RES-064", reaches=("gangs of the new replica exist", "pods of the new replica exist"))
def test_a_replica_is_added_without_the_binding(run: Recorded[BindingThatComesBack]) -> None:
    """Also gangs that are created while the binding is missing have no constraints."""
    view = run.at("new replica at rest")
    gangs = composition.by_composition(run.scene.wanted, view).gangs
    found = {gang: view.get("podgangs", gang) for gang in gangs}
    right: dict[str, object] = dict.fromkeys(gangs, Placement({}, {}, []))
    run.same("constraints of the gangs", right, {each: of(g, expected_topology.seen(g)) for each, g in found.items()})


@requirement(
    "RES-065",
    reaches=(
        "all levels reported available",
        "missing binding reported",
        "all levels reported available again",
    ),
)
def test_a_set_without_replicas_reports_its_binding(run: Recorded[BindingThatComesBack]) -> None:
    """Also without replicas, and when a binding comes back. How it says that the binding is missing is not judged."""


def _workload(env: SceneEnvironment, each: str, binding: str, parts: Mapping[str, Pack]) -> Object:
    """A set with these constraints and no others."""
    workload = env.workload("packed", setName=each, binding=binding)
    template = workload["spec"]["template"]
    holders = {SET: template, GROUP: template["podCliqueScalingGroups"][0], CLIQUE: template["cliques"][2]}
    template["podCliqueScalingGroups"][0]["replicas"] = 2
    for part, holder in holders.items():
        holder.pop("topologyConstraint", None)
        if part in parts:
            holder["topologyConstraint"] = {"topologyName": binding, "pack": dict(parts[part])}
    return workload


def _levels(each: str) -> Levels:
    return OTHER_LEVELS if each == ELSEWHERE else LEVELS


def _inherits(wanted: Expected, gang: Gang, parts: Mapping[str, Pack]) -> bool:
    """Whether a gang is a scaled one of a group without a constraint, in a set that has one."""
    if gang.base or SET not in parts:
        return False
    return GROUP not in parts or any(clique.template.name == "free" for clique in wanted.of_gang(gang.name))


@predicate
def _reported(view: View, statuses: set[str]) -> bool | Unmet:
    found = condition(view.get("podcliquesets", "none"), "TopologyLevelsUnavailable")
    reported = text(found, "status")
    return reported in statuses or Unmet(f"TopologyLevelsUnavailable is {reported or 'absent'}")
