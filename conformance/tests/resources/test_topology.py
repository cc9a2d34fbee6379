"""Topology constraints: from the domains of the set to the node labels of its gangs, and away again."""

from __future__ import annotations

from conformance.grove import expected_topology, labels
from conformance.grove.expected import Expected, expected
from conformance.grove.expected_topology import Levels
from conformance.grove.fields import Document, at, condition, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import composition, observed, predicates
from conformance.testing.comparison import of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.topology_bindings import spec, topology_binding

LEVELS = {domain: f"example.com/{domain}" for domain in ("zone", "datacenter", "block", "rack", "host")}
"""Domain → node label key, from wide to narrow."""
WITHOUT_RACK = {domain: key for domain, key in LEVELS.items() if domain != "rack"}
WIDEST = {"zone": LEVELS["zone"]}
LOST = sorted(LEVELS.keys() - WIDEST)
"""Four domains: two in random order are often in the same one."""
RECONCILES = 8
"""How often the operator reconciles a set that lacks them."""
CONSTRAINED, WITHOUT_LEVEL, FREE = "gangs are constrained", "gangs have lost the rack", "gangs are free"


class BindingThatLosesItsLevels(Scene):
    """A set with constraints, one with constraints at every level, one without, and a ClusterTopologyBinding that loses
    one level, then all but one, and is deleted at last. No nodes: no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        self.binding = binding = env.namespace  # bindings are cluster-scoped: no other scene may have this name
        self.workload = workload = env.workload("packed", binding=binding)
        self.wanted = wanted = expected(workload)
        env.create(topology_binding(binding, LEVELS))
        try:
            env.create(workload)
            env.create(env.workload("deep", binding=binding))
            env.create(env.workload("frontend", setName="free"))
            env.wait_for("gangs exist", composition.all_held(wanted.cliques))
            env.settle(CONSTRAINED, _placed(workload, wanted, LEVELS, binding))
            reported = _condition("False", "AllClusterTopologyLevelsAvailable")
            env.settle("set reports that all levels are available", reported, 60)
            reported = _condition("False", "AllClusterTopologyLevelsAvailable", of="free")
            env.settle("set without constraints reports that no level is missing", reported, 60)

            observed.rest(env, wanted)  # nothing but the binding is to have the operator reconcile the set
            env.patch("clustertopologybindings", binding, {"spec": spec(WITHOUT_RACK)})
            reported = _condition("True", "ClusterTopologyLevelsUnavailable")
            env.settle("set reports that a level is missing", reported, 60)
            env.settle(WITHOUT_LEVEL, _placed(workload, wanted, WITHOUT_RACK, binding))
            self._lose_all_levels_but_one(env)
        finally:
            env.delete("clustertopologybindings", binding)
        reported = _condition("Unknown", "ClusterTopologyNotFound")
        env.settle("set reports that the binding does not exist", reported, 60)
        env.settle(FREE, _placed(workload, wanted, {}, ""))

    def _lose_all_levels_but_one(self, env: SceneEnvironment) -> None:
        """Four levels are missing, and the operator reconciles the set that names them again and again."""
        env.patch("clustertopologybindings", self.binding, {"spec": spec(WIDEST)})
        each = (_condition("True", "ClusterTopologyLevelsUnavailable", domain, of="deep") for domain in LOST)
        env.settle("set names all missing levels", observed.all_of(*each))
        for hours in range(5, 5 + RECONCILES):
            env.patch("podcliquesets", "deep", {"spec": {"template": {"terminationDelay": f"{hours}h0m0s"}}})
            env.settled("operator has reconciled the set", _observed("deep"), 5)
        env.mark("reconciled again and again")
        observed.rest(env, self.wanted)  # nothing but the deletion of the binding is to have it reconcile the set


@requirement("RES-060")
def test_constraints_are_translated_into_node_labels(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """Constraints of set, groups and cliques MUST be translated into node label keys in the gangs."""
    run.given("gangs exist")
    _compare(run, LEVELS, CONSTRAINED)


@requirement("RES-061")
def test_constrained_gangs_name_the_binding(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """A gang MUST name the binding while any of its constraints is translated, and MUST NOT name it otherwise."""
    for what, binding, step in (
        ("the binding that gangs name", run.scene.binding, CONSTRAINED),
        ("the binding that free gangs name", "", FREE),
    ):
        named = _named(run.scene.wanted, run.at(step))
        run.same(what, dict.fromkeys(named, binding), named)


@requirement("RES-062")
def test_a_scaled_gang_has_the_constraint_of_the_set(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """The gang of a scaling group replica MUST have the constraint of the set if the scaling group has none."""
    loose = expected_topology.seen(composition.gang_of(run.at(CONSTRAINED), "p-0-loose-1-free")).gang
    run.expect("constraint of a scaled gang of an unconstrained group", {"required": LEVELS["zone"]}, loose)


@requirement("RES-063")
def test_constraints_are_removed_with_their_level(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """A constraint MUST be removed from the gangs when its level is removed from the ClusterTopologyBinding."""
    _compare(run, WITHOUT_RACK, WITHOUT_LEVEL)


@requirement("RES-064")
def test_gangs_are_unconstrained_without_the_binding(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """While the ClusterTopologyBinding of a set does not exist, its gangs MUST exist without constraints."""
    _compare(run, {}, FREE)


@requirement(
    "RES-065",
    reaches=(
        "set reports that all levels are available",
        "set reports that a level is missing",
        "set reports that the binding does not exist",
    ),
)
def test_the_condition_reports_missing_levels(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """TopologyLevelsUnavailable MUST say whether the binding has all levels, lacks some of them, or does not exist."""


@requirement("RES-066", reaches="set without constraints reports that no level is missing")
def test_a_set_without_constraints_lacks_no_level(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """TopologyLevelsUnavailable of a set without topology constraints MUST say that no level is missing."""


@requirement("RES-092")
def test_missing_levels_are_named_in_one_order(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """A set that lacks several levels MUST name them in the same order each time, whatever words it uses."""
    run.given("set names all missing levels")
    records = run.until("reconciled again and again").records("podcliquesets", "deep")
    messages = {text(condition(record.object, "TopologyLevelsUnavailable"), "message") for record in records}
    of_all = sorted(message for message in messages if all(domain in message for domain in LOST))
    run.expect("messages about the same missing levels", of_all[:1], of_all)


def _compare(run: Recorded[BindingThatLosesItsLevels], levels: Levels, step: str) -> None:
    """The gangs have the constraints that the levels of the binding allow."""
    view = run.at(step)
    wanted = composition.by_composition(run.scene.wanted, view)
    for gang, right in expected_topology.placements(run.scene.workload, wanted, levels).items():
        found = view.get("podgangs", gang)
        run.expect(f"constraints of {gang}", right, of(found, expected_topology.seen(found)))


def _placed(workload: Document, wanted: Expected, levels: Levels, binding: str) -> predicates.Predicate:
    def seen(view: View) -> bool:
        right = expected_topology.placements(workload, composition.by_composition(wanted, view), levels)
        constrained = {gang: expected_topology.seen(view.get("podgangs", gang)) for gang in right} == right
        return constrained and set(_named(wanted, view).values()) == {binding}

    return seen


def _named(wanted: Expected, view: View) -> dict[str, str]:
    """The binding that each gang names."""
    gangs = composition.by_composition(wanted, view).gangs
    return {gang: observed.annotation(view.get("podgangs", gang), labels.TOPOLOGY) for gang in gangs}


def _observed(of: str) -> predicates.Predicate:
    def seen(view: View) -> bool:
        found = view.get("podcliquesets", of)
        return at(found, "status", "observedGeneration") == at(found, "metadata", "generation")

    return seen


def _condition(status: str, reason: str, word: str = "", of: str = "p") -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = condition(view.get("podcliquesets", of), "TopologyLevelsUnavailable")
        reported = (text(found, "status"), text(found, "reason"))
        if reported == (status, reason) and word in text(found, "message"):
            return True
        return Unmet(f"TopologyLevelsUnavailable is {reported}: {text(found, 'message')}")

    return seen
