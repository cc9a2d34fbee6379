"""Tests of topology constraints on some levels only, of two bindings at the same time, and of a binding that is
recreated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from conformance.grove import expected_topology, labels
from conformance.grove.expected import ExpectedGang, ExpectedObjects, expected
from conformance.grove.expected_topology import Levels, Placement
from conformance.grove.fields import condition, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import composition, observed, predicates
from conformance.testing.comparison import value_or_absent
from conformance.testing.scaled import scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.topology_bindings import topology_binding

LEVELS = {domain: f"example.com/{domain}" for domain in ("zone", "block", "rack", "host")}
"""Domain → node label key, from wide to narrow."""
OTHER_LEVELS = {domain: f"other.example.com/{domain}" for domain in LEVELS}
"""The same domains, mapped to other node labels."""
Pack = Mapping[str, str]
SET, GROUP, CLIQUE = "set", "group", "clique"
PARTS_BY_SET: Mapping[str, Mapping[str, Pack]] = {
    "none": {},
    "set-alone": {SET: {"required": "zone"}},
    "group-alone": {GROUP: {"required": "rack"}},
    "clique-alone": {CLIQUE: {"required": "host"}},
    "set-and-clique": {SET: {"required": "block"}, CLIQUE: {"required": "host"}},
    "group-and-clique": {GROUP: {"required": "rack"}, CLIQUE: {"required": "host"}},
    "preferring": {SET: {"required": "block", "preferred": "rack"}, GROUP: {"preferred": "host"}},
    "elsewhere": {SET: {"required": "block"}, GROUP: {"required": "rack"}, CLIQUE: {"required": "host"}},
}
"""Set → level → constraint. The last set names another binding than the other sets."""
OTHER_NAMESPACE_SET = "elsewhere"


class ConstraintsOfSomeLevels(Scene):
    """Two ClusterTopologyBindings with the same domains and different node labels, and sets that have constraints on
    different levels (see PARTS_BY_SET). There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        self.binding, other = env.namespace, f"{env.namespace}-other"
        self.workloads = {
            set_name: _workload(env, set_name, self._actual_gang_name(set_name), parts)
            for set_name, parts in PARTS_BY_SET.items()
        }
        self.expected = {set_name: expected(workload) for set_name, workload in self.workloads.items()}
        env.create(topology_binding(self.binding, LEVELS))
        try:
            env.create(topology_binding(other, OTHER_LEVELS))
            try:
                for workload in self.workloads.values():
                    env.create(workload)
                cliques = [clique for expected_set in self.expected.values() for clique in expected_set.cliques]
                env.wait_for("gangs exist", composition.all_in_gangs(cliques))
                env.settled("gangs have their constraints", self._are_constraints_translated, 30)
                env.quiet(1)
                env.mark("nothing moves")
            finally:
                env.delete("clustertopologybindings", other)
        finally:
            env.delete("clustertopologybindings", self.binding)

    def _actual_gang_name(self, set_name: str) -> str:
        return f"{self.binding}-other" if set_name == OTHER_NAMESPACE_SET else self.binding

    def constraints(self, set_name: str, view: View) -> tuple[dict[str, Placement], dict[str, object]]:
        """Return the constraints that the gangs of a set must have, and the constraints that they have. If the set has
        a constraint, scaled gangs of a group without a constraint are left out (RES-062)."""
        expected_set = composition.with_actual_gang_names(self.expected[set_name], view)
        placements = expected_topology.placements(self.workloads[set_name], expected_set, _levels_of_binding(set_name))
        judged = [
            gang
            for gang in expected_set.gangs.values()
            if not _inherits_constraint(expected_set, gang, PARTS_BY_SET[set_name])
        ]
        gangs = {gang.name: view.get("podgangs", gang.name) for gang in judged}
        actual: dict[str, object] = {
            name: value_or_absent(gang, expected_topology.observed_constraints(gang)) for name, gang in gangs.items()
        }
        return {name: replace(placements[name], inherited=False) for name in gangs}, actual

    def _are_constraints_translated(self, view: View) -> bool:
        pairs = [self.constraints(set_name, view) for set_name in PARTS_BY_SET]
        return all(placements == actual for placements, actual in pairs)


class BindingThatComesBack(Scene):
    """A set with constraints and without replicas. Its ClusterTopologyBinding is deleted, the set gets a replica and
    loses it again, and the binding is recreated. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        binding = env.namespace
        workload = env.workload("packed", setName="none", binding=binding)
        self.expected = expected(workload)
        workload["spec"]["replicas"] = 0
        env.create(topology_binding(binding, LEVELS))
        try:
            env.create(workload)
            env.settle("all levels reported available", _is_reported({"False"}), 60)
            env.quiet(1)  # only the deletion of the binding may make the operator reconcile the set
        finally:
            env.delete("clustertopologybindings", binding)
        env.settle("missing binding reported", _is_reported({"True", "Unknown"}), 60)
        scale(env, "podcliquesets", "none", 1)
        env.settle("gangs of the new replica exist", composition.all_in_gangs(self.expected.cliques), 60)
        env.settle("pods of the new replica exist", predicates.all_exist(list(self.expected.cliques.values())), 60)
        env.quiet(1)
        env.mark("new replica at rest")
        scale(env, "podcliquesets", "none", 0)
        env.settled("the new replica is gone", observed.are_absent("podcliques", self.expected.cliques), 60)
        env.create(topology_binding(binding, LEVELS))
        try:
            env.settle("all levels reported available again", _is_reported({"False"}), 60)
        finally:
            env.delete("clustertopologybindings", binding)


@requirement("RES-060")
@pytest.mark.parametrize("set_name", PARTS_BY_SET)
def test_constraints_of_some_levels_are_translated(run: Recorded[ConstraintsOfSomeLevels], set_name: str) -> None:
    """A level needs no constraint above or below it, and a domain means the node label to which the set's own binding
    maps it."""
    run.given("gangs exist")
    run.same(f"constraints of the gangs of {set_name}", *run.scene.constraints(set_name, run.at("nothing moves")))


@requirement("RES-061")
def test_gangs_name_the_binding_of_their_set(run: Recorded[ConstraintsOfSomeLevels]) -> None:
    """There are two bindings in the cluster, and the constraint may be on any level."""
    view = run.at("nothing moves")
    bindings: dict[str, object] = {}
    actual: dict[str, object] = {}
    for set_name in PARTS_BY_SET:
        placements, _ = run.scene.constraints(set_name, view)
        for gang, placement in placements.items():
            if placement.any:
                bindings[gang] = f"{run.scene.binding}-other" if set_name == OTHER_NAMESPACE_SET else run.scene.binding
                current = view.get("podgangs", gang)
                actual[gang] = value_or_absent(current, observed.annotation(current, labels.TOPOLOGY))
    run.same("the bindings that gangs name", bindings, actual)


@requirement("RES-064", reaches=("gangs of the new replica exist", "pods of the new replica exist"))
def test_a_replica_is_added_without_the_binding(run: Recorded[BindingThatComesBack]) -> None:
    """Gangs that are created while the binding is missing have no constraints either."""
    view = run.at("new replica at rest")
    gangs = composition.with_actual_gang_names(run.scene.expected, view).gangs
    current = {gang: view.get("podgangs", gang) for gang in gangs}
    placements: dict[str, object] = dict.fromkeys(gangs, Placement({}, {}, []))
    run.same(
        "constraints of the gangs",
        placements,
        {gang_name: value_or_absent(g, expected_topology.observed_constraints(g)) for gang_name, g in current.items()},
    )


@requirement(
    "RES-065",
    reaches=("all levels reported available", "missing binding reported", "all levels reported available again"),
)
def test_a_set_without_replicas_reports_its_binding(run: Recorded[BindingThatComesBack]) -> None:
    """The set reports the state of the binding even without replicas, and again when the binding is recreated. The
    status that reports a missing binding is not specified."""


def _workload(env: SceneEnvironment, set_name: str, binding: str, parts: Mapping[str, Pack]) -> Object:
    """Return a set with these constraints and no other constraints."""
    workload = env.workload("packed", setName=set_name, binding=binding)
    template = workload["spec"]["template"]
    holders = {SET: template, GROUP: template["podCliqueScalingGroups"][0], CLIQUE: template["cliques"][2]}
    template["podCliqueScalingGroups"][0]["replicas"] = 2
    for part, holder in holders.items():
        holder.pop("topologyConstraint", None)
        if part in parts:
            holder["topologyConstraint"] = {"topologyName": binding, "pack": dict(parts[part])}
    return workload


def _levels_of_binding(set_name: str) -> Levels:
    return OTHER_LEVELS if set_name == OTHER_NAMESPACE_SET else LEVELS


def _inherits_constraint(expected_set: ExpectedObjects, gang: ExpectedGang, parts: Mapping[str, Pack]) -> bool:
    """Return whether a gang is a scaled gang of a group without a constraint, in a set that has a constraint."""
    if gang.base or SET not in parts:
        return False
    return GROUP not in parts or any(clique.template.name == "free" for clique in expected_set.of_gang(gang.name))


@predicate
def _is_reported(view: View, statuses: set[str]) -> bool | Unmet:
    levels = condition(view.get("podcliquesets", "none"), "TopologyLevelsUnavailable")
    reported = text(levels, "status")
    return reported in statuses or Unmet(f"TopologyLevelsUnavailable is {reported or 'absent'}")
