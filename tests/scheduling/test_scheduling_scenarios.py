"""Tests of the requirements that an observed scenario breaks. The tests need no cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.grove.scheduling import manifests, sampling, scenarios
from conformance.grove.scheduling.history import PodBound, PodDeleted
from conformance.grove.scheduling.instance import Gang, Group, Instance, Node, RunningPod, SchedulingOutcome
from conformance.suite.registry import requirement
from conformance.testing import judging
from conformance.testing.playing import Move, ScenarioResult

ALL = {scenario.id: scenario for scenario in scenarios.load()}


def scene(name, *moves, outcome=None, **options):
    """Return the result of a scenario with these steps, one step each second."""
    scenario = ALL[name]
    steps = [Move(float(number), step) for number, step in enumerate(moves)]
    placed: dict[str, dict[str, dict[str, int]]] = {}
    for step in moves:
        if isinstance(step, PodBound):
            spread = placed.setdefault(step.gang, {}).setdefault(step.group, {})
            spread[step.node] = spread.get(step.node, 0) + 1
    observed = outcome or SchedulingOutcome(placed)
    return ScenarioResult(scenario, scenario.instance, False, steps, observed, 5.0, options.pop("nominated", {}))


def broken_requirements(given, **options):
    return set(judging.breaches_by_requirement(given, judging.breaches_of(given, **options)))


def bound(gang, group, *nodes):
    return [PodBound(f"{gang}-{group}-{i}", gang, group, node) for i, node in enumerate(nodes)]


def test_every_scenario_names_judged_requirements():
    judged = {*judging.SCHEDULER_REQUIREMENTS, *judging.DOMAIN_REQUIREMENTS, judging.HOST_PORTS}
    assert {id for scenario in ALL.values() for id in scenario.checks} <= judged
    assert all(scenario.checks for scenario in ALL.values())
    assert (
        {*judging.REQUIREMENT_BY_RULE.values(), judging.PREEMPTION_REQUIREMENT}
        <= judged
        <= requirement.load().requirements.keys()
    )
    assert {*judging.PLACEMENT_REQUIREMENTS, *judging.EXCLUSIVE_RULES} <= judged


def test_every_requirement_can_be_broken():
    by_scenarios = {id for scenario in ALL.values() for id in scenario.checks}
    judged_ids = {*by_scenarios, *judging.REQUIREMENT_BY_RULE.values(), judging.PREEMPTION_REQUIREMENT}
    assert {*judging.SCHEDULER_REQUIREMENTS, *judging.DOMAIN_REQUIREMENTS} <= judged_ids


def test_a_torn_gang_breaks_its_rule_and_the_requirements_of_its_scenario():
    assert broken_requirements(scene("GS-S03", *bound("A", "w", "n-0"))) == {"SCHED-020", "SCHED-050"}
    assert broken_requirements(scene("GS-S09", *bound("A", "w", "n1"))) >= {"SCHED-020", "SCHED-027"}


def test_a_scene_names_the_scenarios_that_break_a_requirement():
    torn, whole = scene("GS-S03", *bound("A", "w", "n-0")), scene("GS-S01", *bound("A", "w", "n1", "n1", "n2", "n2"))
    given = judging.Scenarios()
    given.results, given.saw_everything_at_once = [torn, whole], True
    assert {id: [played for played, _ in violations] for id, violations in given.failures_by_requirement.items()} == {
        "SCHED-020": [torn],
        "SCHED-050": [torn],
    }


def test_a_waiting_gang_breaks_the_requirement_that_it_is_placed():
    assert broken_requirements(scene("GS-S01")) == {"SCHED-026"}
    assert broken_requirements(scene("GS-S05")) == {"SCHED-022", "SCHED-026"}
    assert broken_requirements(scene("GS-S40-finished")) == {"SCHED-076"}


def test_an_extra_pod_that_waits_breaks_no_must():
    assert broken_requirements(scene("GS-S23", *bound("A", "w", "n1"), *bound("B", "w", "n1"))) == {judging.EXTRA_PODS}
    assert broken_requirements(scene("GS-S23", *bound("A", "w", "n1"))) == {"SCHED-026"}
    assert requirement.load().get(judging.EXTRA_PODS).level is requirement.Level.SHOULD


def test_a_placement_that_requires_a_search_has_its_own_requirement():
    for name in ("GS-S07", "GS-S24", "packing"):
        assert broken_requirements(scene(name)) == {judging.SEARCHED_ROOM}


def test_room_may_be_reserved_for_another_waiting_gang():
    assert broken_requirements(scene("GS-S12", *bound("A", "w", "n1", "n1"))) == {judging.WITHHELD_ROOM}
    assert broken_requirements(scene("GS-S11")) == {judging.WITHHELD_ROOM, "SCHED-025"}
    assert broken_requirements(scene("gated")) == {judging.WITHHELD_ROOM}
    assert broken_requirements(scene("GS-S22", *bound("base", "w", "n1", "n1", "n1"))) == {judging.WITHHELD_ROOM}
    assert broken_requirements(
        scene("GS-S44-6", *bound("base", "r0", "n1", "n1"), *bound("base", "r1", "n1", "n1"))
    ) == {
        "SCHED-026",
        "SCHED-052",
    }
    assert broken_requirements(scene("GS-S08")) == {"SCHED-026", "SCHED-027"}


def test_other_pods_of_a_gang_that_has_lost_a_pod_have_their_own_requirement():
    ended = SchedulingOutcome({}, frozenset({"w0", "w1"}))
    assert broken_requirements(scene("repair-full", PodDeleted("w0"), PodDeleted("w1"), outcome=ended)) == {"SCHED-074"}


@pytest.mark.parametrize("evicted", [("w0", "w1"), ("w0",)], ids=["all", "some"])
def test_a_gang_may_be_ended_because_it_is_below_its_minimum(evicted):
    """GREP-393: "This termination behavior is not enforced by Grove itself and may vary"."""
    played = scene("GS-S41-full", *map(PodDeleted, evicted), outcome=SchedulingOutcome({}, frozenset(evicted)))
    assert broken_requirements(played) == {"SCHED-074"}


def test_a_gang_below_its_minimum_is_preempted_like_any_other_gang():
    instance = ALL["repair-full"].instance
    high = Gang("H", (Group("w", 1, 1, {"gpus": 1}),), 90)
    instance = replace(instance, gangs=(*instance.gangs, high))
    steps = [PodDeleted("w0"), *bound("H", "w", "n1")]
    outcome = SchedulingOutcome({"H": {"w": {"n1": 1}}}, frozenset({"w0"}))
    played = replace(scene("repair-full", *steps, outcome=outcome), instance=instance)
    scenario = replace(played.scenario, checks=())
    assert broken_requirements(replace(played, scenario=scenario)) == {"SCHED-031"}


@pytest.mark.parametrize(
    ("state", "nodes", "breaks"),
    [
        pytest.param("terminating", ("n1", "n2"), {"SCHED-076"}, id="in the room of a terminating pod"),
        pytest.param("terminating", ("n1", "n1", "n2"), {"SCHED-050"}, id="in more room than that"),
        pytest.param("finished", (), {"SCHED-076"}, id="not in the room of an ended pod"),
        pytest.param("running", ("n1", "n2"), {"SCHED-050"}, id="in the room of a running pod"),
    ],
)
def test_free_capacity_of_other_pods_has_its_own_requirement(state, nodes, breaks):
    """This applies to any scenario, such as a generated scenario, which names no requirement."""
    gang = Gang("A", (Group("w", 2, 3, {"gpus": 1}),))
    hosts = tuple(Node(name, {"gpus": 1}, {"host": name}) for name in ("n1", "n2"))
    instance = Instance(hosts, (gang,), (RunningPod("old", "n2", {"gpus": 1}, state=state),))
    played = scene("GS-S01", *bound("A", "w", *nodes))
    played = replace(played, instance=instance, scenario=replace(played.scenario, checks=()))
    assert broken_requirements(played) == breaks


def test_the_capacity_of_a_victim_is_that_of_a_terminating_pod():
    deleted, placed = [PodDeleted("l1"), PodDeleted("l2")], bound("H", "w", "n1", "n1")
    outcome = SchedulingOutcome({"H": {"w": {"n1": 2}}}, frozenset({"l1", "l2"}))
    assert broken_requirements(scene("GS-S31", *deleted, *placed, outcome=outcome)) == set()
    assert broken_requirements(scene("GS-S31", *placed, *deleted, outcome=outcome)) == {"SCHED-076"}


def test_a_waiting_pod_may_not_be_nominated():
    assert broken_requirements(scene("GS-S02", nominated={"gs-s02-a-w-0": "n1"})) == {"SCHED-024"}


def test_preferences_are_distinguished_from_musts():
    assert broken_requirements(scene("GS-S26", *bound("G", "w", "a1", "a2", "b1"))) == {"TOPO-038"}
    assert broken_requirements(scene("GS-S26", *bound("G", "w", "b1", "b1", "b2"))) == set()


def test_unnecessary_evictions_are_judged_only_if_the_feature_is_claimed():
    assert broken_requirements(scene("GS-S31")) == {judging.PREEMPTION_REQUIREMENT}
    steps = [PodDeleted("l1"), PodDeleted("l2"), *bound("H", "w", "n1", "n1")]
    assert (
        broken_requirements(
            scene("GS-S31", *steps, outcome=SchedulingOutcome({"H": {"w": {"n1": 2}}}, frozenset({"l1", "l2"})))
        )
        == set()
    )


def test_a_scaled_gang_is_placed_first_only_if_gates_are_overlooked():
    assert broken_requirements(scene("GS-S21", *bound("scaled", "w", "n1"))) == {judging.GATED_PODS}


def test_results_that_depend_on_the_order_of_nodes_are_ignored_if_accidental():
    lower = bound("L", "w", "a1", "a1")
    assert broken_requirements(scene("GS-S45", *lower)) == {"SCHED-028"}
    assert broken_requirements(scene("GS-S45", *lower), saw_everything_at_once=False) == set()


def test_an_explanation_is_complete_and_reads_back_unchanged(tmp_path):
    given = scene("GS-S05", *bound("A", "P", "n1", "n2"))
    text = judging.explanation(given, judging.breaches_of(given))
    report, _, yaml = text.partition("scenario:\n")
    assert report.splitlines()[0] == "seen: A.P n1+n2"
    assert "breach: GS-21 A: is bound in part: D 0 of 1" in report
    assert [line for line in report.splitlines() if line.startswith("permitted")] == [
        "permitted: A.P n1; A.D n2",
        "permitted: A.P n2; A.D n1",
    ]
    (tmp_path / "again.yaml").write_text(yaml)
    assert scenarios.read(tmp_path / "again.yaml")[0].instance == given.instance


def test_drawn_instances_depend_only_on_the_seed():
    first, second = (sampling.scenarios(7, 6, ()) for _ in range(2))
    assert len(first) == 6 and first == second
    assert [scenario.instance for scenario in sampling.scenarios(8, 6, ())] != [scenario.instance for scenario in first]
    assert all("seed 7" in scenario.about for scenario in first)


def test_minimums_of_zero_have_their_own_requirement():
    assert broken_requirements(scene("GS-S25", *bound("A", "o", "n1"))) == {judging.ZERO_MINIMUMS}
    assert broken_requirements(scene("zero-minimum")) == {judging.ZERO_MINIMUMS}
    drawn = sampling.scenarios(3, 20, ())
    assert not any(scenario.instance.has_zero_minimum for scenario in drawn)


def test_a_moved_pod_is_not_evicted():
    placed = bound("G", "w", "n1")
    deleted, rebound = PodDeleted("w0"), PodBound("g-w-again", "G", "w", "n2", "w0")
    repaired = {"G": {"w": {"n1": 1, "n2": 1}}}
    evicted = scene("repair", deleted, *placed, outcome=SchedulingOutcome({"G": {"w": {"n1": 1}}}, frozenset({"w0"})))
    assert "SCHED-030" in broken_requirements(evicted)
    waits = SchedulingOutcome({"G": {"w": {"n1": 1}}}, frozenset({"w0"}), recreated=True)
    assert "SCHED-030" in broken_requirements(scene("repair", deleted, *placed, outcome=waits))
    moved = SchedulingOutcome(repaired, frozenset({"w0"}), recreated=True, moved=frozenset({"w0"}))
    assert broken_requirements(scene("repair", deleted, *placed, rebound, outcome=moved)) == set()
    assert scenarios.notation(moved) == "G.w n1+n2; moved w0"


def evicting(name, pod):
    return scene(name, PodDeleted(pod), outcome=SchedulingOutcome({}, frozenset({pod})))


@pytest.mark.parametrize(
    ("name", "other_scene", "breaks"),
    [
        pytest.param("GS-S33", ("GS-S31", PodBound("h", "H", "w", "n1")), "SCHED-030", id="of lower priority"),
        pytest.param("GS-S38", ("GS-S31", PodBound("l", "L", "w", "n1")), "SCHED-030", id="of the same priority"),
        pytest.param("GS-S38", ("GS-S31", PodDeleted("l1")), "SCHED-030", id="not placed"),
        pytest.param("GS-S38", ("GS-S38", PodBound("h", "H", "w", "n1")), "SCHED-030", id="of the same scenario"),
        pytest.param("GS-S38", ("GS-S31", PodBound("h", "H", "w", "n1")), "SCHED-032", id="of higher priority"),
    ],
)
def test_a_pod_may_have_been_evicted_for_a_gang_of_another_scenario(name, other_scene, breaks):
    played, other = evicting(name, "p1"), scene(other_scene[0], PodDeleted("l2"), other_scene[1])
    proven = [judging.proven_breach(breach, played, [played, other]) for breach in judging.breaches_of(played)]
    ids = judging.breaches_by_requirement(played, proven).keys() & {"SCHED-030", "SCHED-032"}
    assert ids == {breaks}


def test_a_gang_that_loses_a_pod_to_an_eviction_was_still_placed_as_a_whole():
    first, second = bound("A", "w", "n1", "n2"), bound("B", "w", "n2", "n1")
    end = SchedulingOutcome({"A": {"w": {"n1": 1}}, "B": {"w": {"n1": 1, "n2": 1}}})
    assert broken_requirements(scene("GS-S09", *first, PodDeleted("A-w-1"), *second, outcome=end)) == {"SCHED-031"}
    assert broken_requirements(scene("GS-S09", *first[:1], *second, outcome=end)) == {"SCHED-020", "SCHED-027"}


def test_a_gang_that_was_already_placed_has_evicted_no_later_pods():
    played, other = evicting("GS-S38", "p1"), scene("GS-S31", PodBound("h", "H", "w", "n1"))
    assert "SCHED-030" in judging.breaches_by_requirement(
        played, [judging.proven_breach(breach, played, [other]) for breach in judging.breaches_of(played)]
    )


def test_recreated_pods_are_identified_by_their_names():
    instance = ALL["repair"].instance
    testbed = manifests.Testbed("ns", "pool", "mine", prefix="repair")
    [_, *remaining] = manifests.running_pods(instance, testbed)
    waiting = manifests.pods(instance, testbed)
    recreated = manifests.recreated_pod(instance, instance.running[0], testbed)
    assert "nodeName" not in recreated["spec"] and recreated["metadata"]["name"] == "repair-w0-again"
    [gang] = manifests.gangs(instance, testbed)
    groups = manifests.recreated_references(gang["spec"]["podgroups"], instance.running[0], testbed)
    names = {reference["name"] for reference in groups[0]["podReferences"]}
    assert names == {"repair-w0-again", "repair-w1", "repair-g-w-0"}
    outcome = manifests.outcome(instance, [*remaining, *waiting, recreated], testbed)
    assert (outcome.evicted, outcome.moved, outcome.recreated) == ({"w0"}, set(), True)
    bound_again = {**recreated, "spec": {**recreated["spec"], "nodeName": testbed.node("n2")}}
    outcome = manifests.outcome(instance, [*remaining, *waiting, bound_again], testbed)
    assert (outcome.moved, outcome.victims, outcome.placed) == ({"w0"}, frozenset(), {"G": {"w": {"n2": 1}}})


def test_features_that_a_scheduler_cannot_express_are_not_judged():
    lower = scene("GS-S10", *bound("L", "w", "n1", "n1"))
    assert broken_requirements(lower, saw_everything_at_once=False) == set(), (
        "the gang of higher priority may have been tried in vain"
    )
    assert broken_requirements(lower) == {"SCHED-028"}
    assert broken_requirements(lower, has_priorities=False) == set()
    for feature, left_out in (("no-preferred-topology", "GS-S26"), ("one-topology-level", "hierarchy")):
        all_ids = {one.id for one in judging.expressible_scenarios(list(ALL.values()), judging.DOMAIN_REQUIREMENTS)}
        allowed = {
            one.id for one in judging.expressible_scenarios(list(ALL.values()), judging.DOMAIN_REQUIREMENTS, {feature})
        }
        assert left_out in all_ids - allowed and {"GS-S13", judging.WITNESS_SCENARIO} <= allowed
        drawn = sampling.scenarios(3, 5, (), {feature})
        assert len(drawn) == 5 and all(sampling.is_expressible(one.instance, {feature}) for one in drawn)


def test_a_binding_has_the_levels_that_gangs_use():
    testbed = manifests.Testbed("ns", "pool", "mine")
    levels = {}
    for name in ("GS-S01", "GS-S13", "GS-S28", "hierarchy"):
        binding = manifests.topology_binding(ALL[name].instance, testbed)
        levels[name] = [level["domain"] for level in binding["spec"]["levels"]] if binding else []
    assert levels == {
        "GS-S01": [],
        "GS-S13": ["rack"],
        "GS-S28": ["rack", "host"],
        "hierarchy": ["block", "rack", "host"],
    }
    [gang] = manifests.gangs(ALL["GS-S13"].instance, testbed)
    assert gang["metadata"]["annotations"] == {"grove.io/topology-name": "pool"}
