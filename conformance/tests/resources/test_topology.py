"""Tests of the translation of topology constraints, from the domains in a set to the node labels in its gangs, and of
their removal."""

from __future__ import annotations

from dataclasses import replace

from conformance.grove import expected_topology, labels
from conformance.grove.expected import ExpectedObjects, expected
from conformance.grove.expected_topology import Levels, Placement
from conformance.grove.fields import Document, at, condition, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import composition, observed
from conformance.testing.comparison import value_or_absent
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, Span, requirement
from conformance.testing.topology_bindings import spec, topology_binding

LEVELS = {domain: f"example.com/{domain}" for domain in ("zone", "datacenter", "block", "rack", "host")}
"""Domain → node label key, from wide to narrow."""
WITHOUT_RACK = {domain: key for domain, key in LEVELS.items() if domain != "rack"}
WIDEST = {"zone": LEVELS["zone"]}
LOST_LEVELS = sorted(LEVELS.keys() - WIDEST)
"""The missing domains. With only two domains, a random order would often repeat by chance."""
RECONCILE_COUNT = 8
"""The number of times that the operator reconciles a set that lacks these domains."""
GANGS_CONSTRAINED, RACK_REMOVED, GANGS_UNCONSTRAINED = (
    "gangs are constrained",
    "gangs have lost the rack",
    "gangs are free",
)
RACK_CONSTRAINT_PRESENT = "a gang has a constraint on racks"
LEVELS_REPORTED_MISSING = "set reports that all levels but one are missing"


class BindingThatLosesItsLevels(Scene):
    """A set with constraints, a set with constraints at every level, a set without constraints, and a
    ClusterTopologyBinding. The binding loses one level, then all levels but one, and finally it is deleted. There are
    no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        self.binding = binding = env.namespace  # bindings are cluster-scoped, so no other scene may use this name
        self.workload = workload = env.workload("packed", binding=binding)
        self.expected = expected_set = expected(workload)
        env.create(topology_binding(binding, LEVELS))
        try:
            env.create(workload)
            env.create(env.workload("deep", binding=binding))
            env.create(env.workload("frontend", setName="free"))
            env.wait_for("gangs exist", composition.all_in_gangs(expected_set.cliques))
            env.settle(GANGS_CONSTRAINED, _are_gangs_constrained(workload, expected_set, LEVELS, binding))
            env.settle(RACK_CONSTRAINT_PRESENT, _has_rack_constraint(expected_set))
            reported = _has_condition("False", "AllClusterTopologyLevelsAvailable")
            env.settle("set reports that all levels are available", reported, 60)
            reported = _has_condition("False", "", of="free")
            env.settle("set without constraints reports that no level is missing", reported, 60)

            observed.wait_for_rest(env, expected_set)  # only the binding may make the operator reconcile the set
            env.patch("clustertopologybindings", binding, {"spec": spec(WITHOUT_RACK)})
            reported = _has_condition("True", "ClusterTopologyLevelsUnavailable")
            env.settle("set reports that a level is missing", reported, 60)
            env.settle(RACK_REMOVED, _are_gangs_constrained(workload, expected_set, WITHOUT_RACK, binding))
            self._lose_all_levels_but_one(env)
        finally:
            env.delete("clustertopologybindings", binding)
        reported = _has_condition("Unknown True", "ClusterTopologyNotFound")
        env.settle("set reports that the binding does not exist", reported, 60)
        env.settle(GANGS_UNCONSTRAINED, _are_gangs_constrained(workload, expected_set, {}, ""))

    def _lose_all_levels_but_one(self, env: SceneEnvironment) -> None:
        """Remove four levels, and make the operator reconcile the set that lacks them several times. The message need
        not name the levels. If it does not, the wait for a message that names all levels lasts until its time limit."""
        env.patch("clustertopologybindings", self.binding, {"spec": spec(WIDEST)})
        conditions = (
            _has_condition("True", "ClusterTopologyLevelsUnavailable", domain, of="deep") for domain in LOST_LEVELS
        )
        env.settled("set names all missing levels", observed.all_of(*conditions))
        env.settle(LEVELS_REPORTED_MISSING, _has_condition("True", "ClusterTopologyLevelsUnavailable", of="deep"))
        for hours in range(5, 5 + RECONCILE_COUNT):
            env.patch("podcliquesets", "deep", {"spec": {"template": {"terminationDelay": f"{hours}h0m0s"}}})
            env.settled("operator has reconciled the set", _is_observed("deep"), 5)
        env.mark("reconciled again and again")
        observed.wait_for_rest(
            env, self.expected
        )  # only the deletion of the binding may make the operator reconcile the set


@requirement("RES-060")
def test_constraints_are_translated_into_node_labels(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """Scaled gangs whose group has no constraint are covered by another requirement."""
    run.given("gangs exist")
    _compare(run, LEVELS, GANGS_CONSTRAINED)


@requirement("RES-061")
def test_constrained_gangs_name_the_binding(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """Gangs without a constraint are not judged."""
    bindings = _actual_gang_names(run.scene.expected, run.at(GANGS_CONSTRAINED), constrained=True)
    run.same("the binding that gangs name", dict.fromkeys(bindings, run.scene.binding), bindings)


@requirement("RES-100")
def test_gangs_without_constraints_name_no_binding(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """The binding has been deleted by then."""
    bindings = _actual_gang_names(run.scene.expected, run.at(GANGS_UNCONSTRAINED), constrained=False)
    run.same("the binding that free gangs name", dict.fromkeys(bindings, ""), bindings)


@requirement("RES-062")
def test_a_scaled_gang_has_the_constraint_of_the_set(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """Upstream's code does this, although its documents say otherwise."""
    constraint = expected_topology.observed_constraints(
        composition.gang_of(run.at(GANGS_CONSTRAINED), "p-0-loose-1-free")
    ).gang
    run.expect("constraint of a scaled gang of an unconstrained group", {"required": LEVELS["zone"]}, constraint)


@requirement("RES-063")
def test_constraints_are_removed_with_their_level(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """Only the binding makes the operator reconcile the set. Constraints that were wrong before are covered by other
    requirements."""
    run.given("gangs exist", RACK_CONSTRAINT_PRESENT)
    before, after = run.at(RACK_CONSTRAINT_PRESENT), run.at(RACK_REMOVED)
    for gang in composition.with_actual_gang_names(run.scene.expected, before).gangs:
        current = after.get("podgangs", gang)
        former_state, current_state = (
            constraint_texts(expected_topology.observed_constraints(state))
            for state in (before.get("podgangs", gang), current)
        )
        run.expect(
            f"constraints of {gang} on racks",
            [],
            value_or_absent(current, [constraint for constraint in current_state if LEVELS["rack"] in constraint]),
        )
        lost_constraints = [
            constraint
            for constraint in former_state
            if LEVELS["rack"] not in constraint and constraint not in current_state
        ]
        run.expect(f"other constraints that {gang} has lost", [], value_or_absent(current, lost_constraints))


@requirement("RES-064")
def test_gangs_are_unconstrained_without_the_binding(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """The gangs had constraints before."""
    _compare(run, {}, GANGS_UNCONSTRAINED)


@requirement(
    "RES-065",
    reaches=(
        "set reports that all levels are available",
        "set reports that a level is missing",
        "set reports that the binding does not exist",
    ),
)
def test_the_condition_reports_missing_levels(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """The documents disagree about the status for a binding that does not exist."""


@requirement("RES-066", reaches="set without constraints reports that no level is missing")
def test_a_set_without_constraints_lacks_no_level(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """The reason is not judged."""


@requirement("RES-092")
def test_missing_levels_are_named_in_one_order(run: Recorded[BindingThatLosesItsLevels]) -> None:
    """The wording of the message is not judged, and the message need not name the levels."""
    run.given(LEVELS_REPORTED_MISSING, "reconciled again and again")
    earlier_messages = [
        message
        for message in _messages(run.until(LEVELS_REPORTED_MISSING))
        if all(domain in message for domain in LOST_LEVELS)
    ]
    messages = list(
        dict.fromkeys(
            [*earlier_messages, *_messages(run.between(LEVELS_REPORTED_MISSING, "reconciled again and again"))]
        )
    )
    run.expect("messages about the same missing levels", messages[:1], messages)


def constraint_texts(placement: Placement) -> list[str]:
    """Return each constraint of a gang as text, such as `p-0-wk: preferred example.com/host`."""
    bundle_constraints = ((", ".join(members), constraint) for members, constraint in placement.bundles)
    constraints = (("the gang", placement.gang), *placement.groups.items(), *bundle_constraints)
    return [f"{subject}: {key} {level}" for subject, constraint in constraints for key, level in constraint.items()]


def _messages(span: Span) -> list[str]:
    """Return the messages about missing levels, in order."""
    records = span.records("podcliquesets", "deep")
    return [text(condition(record.object, "TopologyLevelsUnavailable"), "message") for record in records]


def _compare(run: Recorded[BindingThatLosesItsLevels], levels: Levels, step: str) -> None:
    """Expect that the gangs have the constraints that the levels of the binding allow."""
    view = run.at(step)
    for gang, placement in _expected_placements(run.scene.workload, run.scene.expected, view, levels).items():
        current = view.get("podgangs", gang)
        run.expect(
            f"constraints of {gang}",
            placement,
            value_or_absent(current, expected_topology.observed_constraints(current)),
        )


def _expected_placements(
    workload: Document, expected_set: ExpectedObjects, view: View, levels: Levels
) -> dict[str, Placement]:
    """Return the constraints that the gangs must have. If the scaling group of a gang has no constraint, upstream's
    documents and code contradict each other, so the gang may or may not have the constraint of the set."""
    placements = {}
    named = composition.with_actual_gang_names(expected_set, view)
    for gang, placement in expected_topology.placements(workload, named, levels).items():
        constraints = expected_topology.observed_constraints(view.get("podgangs", gang)).gang
        placements[gang] = replace(
            placement, gang={} if placement.inherited and not constraints else placement.gang, inherited=False
        )
    return placements


@predicate
def _are_gangs_constrained(
    view: View, workload: Document, expected_set: ExpectedObjects, levels: Levels, binding: str
) -> bool:
    placements = _expected_placements(workload, expected_set, view, levels)
    constrained = {
        gang: expected_topology.observed_constraints(view.get("podgangs", gang)) for gang in placements
    } == placements
    bindings = _actual_gang_names(expected_set, view, constrained=binding != "")
    return constrained and set(bindings.values()) == {binding}


def _actual_gang_names(expected_set: ExpectedObjects, view: View, *, constrained: bool) -> dict[str, str]:
    """Return gang → the binding that it names, either for the gangs with a constraint or for the gangs without a
    constraint."""
    gangs = {gang: view.get("podgangs", gang) for gang in composition.with_actual_gang_names(expected_set, view).gangs}
    return {
        gang: observed.annotation(current, labels.TOPOLOGY)
        for gang, current in gangs.items()
        if expected_topology.observed_constraints(current).any is constrained
    }


@predicate
def _has_rack_constraint(view: View, expected_set: ExpectedObjects) -> bool:
    gangs = (view.get("podgangs", gang) for gang in composition.with_actual_gang_names(expected_set, view).gangs)
    return any(
        LEVELS["rack"] in constraint
        for gang in gangs
        for constraint in constraint_texts(expected_topology.observed_constraints(gang))
    )


@predicate
def _is_observed(view: View, of: str) -> bool:
    pcs = view.get("podcliquesets", of)
    return at(pcs, "status", "observedGeneration") == at(pcs, "metadata", "generation")


@predicate
def _has_condition(view: View, status: str, reason: str, word: str = "", of: str = "p") -> bool | Unmet:
    """The condition of a set has one of these statuses, the `reason` (if one is given), and the `word` in its
    message."""
    current = condition(view.get("podcliquesets", of), "TopologyLevelsUnavailable")
    reported = (text(current, "status"), text(current, "reason"))
    is_expected = reported[0] in status.split() and reason in ("", reported[1])
    if is_expected and word in text(current, "message"):
        return True
    return Unmet(f"TopologyLevelsUnavailable is {reported}: {text(current, 'message')}")
