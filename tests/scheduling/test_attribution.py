"""Tests that a breach breaks the requirements about its rule, and no other requirements that its scenario names."""

from __future__ import annotations

import pytest

from conformance.grove.scheduling.history import PodDeleted
from conformance.grove.scheduling.instance import SchedulingOutcome
from conformance.grove.scheduling.rules import Breach
from conformance.testing import judging
from conformance.testing.playing import Move, ScenarioResult
from tests.scheduling.test_scheduling_scenarios import ALL, bound, broken_requirements, scene

REPLICAS = [
    step
    for component in ("prefill-leader", "prefill-worker", "decode-leader", "decode-worker")
    for step in bound("A", component, "n1")
]
"""One replica of each component of two-multi-pod-components-5."""


def evicting(name, victims, *steps):
    """Return the result of a scenario in which pods are evicted before other pods are bound."""
    placed: dict[str, dict[str, dict[str, int]]] = {}
    for step in steps:
        spread = placed.setdefault(step.gang, {}).setdefault(step.group, {})
        spread[step.node] = spread.get(step.node, 0) + 1
    return scene(name, *map(PodDeleted, victims), *steps, outcome=SchedulingOutcome(placed, frozenset(victims)))


@pytest.mark.parametrize(
    ("name", "steps", "breaks"),
    [
        pytest.param("GS-S42", bound("G", "w", "b1"), {"TOPO-035"}, id="not cordoned, in another rack"),
        pytest.param("GS-S42", bound("G", "w", "a2"), {"SCHED-042"}, id="cordoned"),
        pytest.param("GS-S45", bound("H", "w", "a1", "b1"), {"TOPO-034"}, id="higher priority over two racks"),
        pytest.param("GS-S26", bound("G", "w", "a1", "a1", "a1"), {"SCHED-050"}, id="overcommitted rack"),
        pytest.param("GS-S41-full", bound("G", "w", "a2"), {"SCHED-050"}, id="overcommitted rack of the survivors"),
    ],
)
def test_requirements_with_their_own_rule_are_broken_by_no_other_rule(name, steps, breaks):
    assert broken_requirements(scene(name, *steps)) == breaks


def test_a_preemptor_on_two_racks_was_placed_by_preemption():
    assert broken_requirements(evicting("GS-S35", ["x1", "y2"], *bound("H", "w", "a1", "b2"))) == {"TOPO-034"}
    assert broken_requirements(evicting("GS-S35", ["x1", "x2", "y1"], *bound("H", "w", "a1", "a2"))) == {"SCHED-030"}
    assert broken_requirements(evicting("GS-S35", ["x1", "x2"], *bound("H", "w", "a1"))) == {
        "SCHED-020",
        judging.PREEMPTION_REQUIREMENT,
    }
    assert broken_requirements(evicting("GS-S35", ["x1", "x2"])) == {"SCHED-030", judging.PREEMPTION_REQUIREMENT}


@pytest.mark.parametrize(
    ("name", "steps", "breaks"),
    [
        pytest.param("GS-S21", bound("base", "w", "n1"), {"SCHED-020"}, id="base gang in part"),
        pytest.param("GS-S22", bound("base", "w", "n1"), {"SCHED-020"}, id="base gang of two in part"),
        pytest.param("GS-S44-3", bound("base", "r0", "n1"), {"SCHED-020"}, id="base gang of replicas in part"),
        pytest.param(
            "GS-S44-5",
            [*bound("base", "r0", "n1", "n1"), *bound("base", "r1", "n1", "n1"), *bound("s", "r2", "n1")],
            {"SCHED-020"},
            id="scaled gang in part whose minimum does not fit",
        ),
        pytest.param("gated", bound("B", "w", "n1"), {"SCHED-020"}, id="gang without gates in part"),
        pytest.param("gated", bound("A", "w", "n1", "n1"), {"SCHED-020", judging.GATED_PODS}, id="gated pod counts"),
        pytest.param("gated", bound("A", "w", "n1", "n1", "n1"), {judging.GATED_PODS}, id="gated pod bound"),
        pytest.param("repair", bound("G", "w", "n1"), {"SCHED-050"}, id="replacement on a full node"),
        pytest.param("repair", [], {"SCHED-026", "SCHED-041"}, id="replacement waits"),
        pytest.param("GS-S09", bound("A", "w", "n2", "n2"), {"SCHED-050"}, id="one of two gangs, overcommitted"),
        pytest.param(
            "GS-S09",
            [*bound("A", "w", "n1", "n1"), *bound("B", "w", "n2", "n2")],
            {"SCHED-027", "SCHED-050"},
            id="both gangs, overcommitted",
        ),
        pytest.param(
            "two-multi-pod-components-5",
            [*REPLICAS, *bound("more", "leader", "n1")],
            {"SCHED-020"},
            id="half of one more replica",
        ),
        pytest.param(
            "two-multi-pod-components-5",
            [*REPLICAS, *bound("more", "leader", "n1"), *bound("more", "worker", "n1")],
            {"SCHED-050"},
            id="one more replica, overcommitted",
        ),
        pytest.param("two-multi-pod-components-5", REPLICAS[:2], {"SCHED-020", "SCHED-077"}, id="one component"),
        pytest.param("two-multi-pod-components-5", [], {"SCHED-024", "SCHED-077"}, id="no component"),
        pytest.param(
            "two-multi-pod-components",
            [step for component in REPLICAS for step in bound("A", component.group, "n-0")],
            {"SCHED-050", "SCHED-077"},
            id="both components, overcommitted",
        ),
        pytest.param("GS-S05", bound("A", "P", "n1"), {"SCHED-020"}, id="in part, without extra pods"),
        pytest.param("GS-S05", bound("A", "P", "n1", "n2"), {"SCHED-021", "SCHED-022"}, id="extra pods first"),
        pytest.param("GS-S11", bound("H", "w", "n1", "n1"), {"SCHED-020"}, id="higher priority in part"),
        pytest.param(
            "GS-S23",
            [*bound("A", "w", "n1", "n1", "n1"), *bound("B", "w", "n1")],
            {"SCHED-050"},
            id="extra pods, overcommitted",
        ),
    ],
)
def test_requirements_without_a_rule_are_broken_by_their_subject(name, steps, breaks):
    musts = {breach for breach in judging.breaches_of(scene(name, *steps)) if breach.level == "MUST"}
    assert set(judging.breaches_by_requirement(scene(name, *steps), sorted(musts, key=str))) == breaks


@pytest.mark.parametrize(
    ("name", "steps", "breaks"),
    [
        pytest.param("GS-S13", bound("G", "w", "b1", "b1", "b1"), {"SCHED-050"}, id="required rack, overcommitted"),
        pytest.param("GS-S14", bound("G", "w", "a1", "a2"), {"SCHED-020"}, id="required rack, in part"),
        pytest.param("GS-S13", bound("G", "w", "a1", "a2", "b1"), {"TOPO-034"}, id="two racks"),
        pytest.param("GS-S13", [], {"SCHED-026"}, id="waits for a rack that has room"),
        pytest.param("GS-S26", bound("G", "w", "b1"), {"SCHED-020"}, id="preferred rack, in part"),
        pytest.param("GS-S20", bound("X", "w", "a1"), {"SCHED-020"}, id="one of two gangs in part"),
        pytest.param("GS-S20", bound("X", "w", "a1", "b1"), {"TOPO-034"}, id="one of two gangs split"),
        pytest.param("GS-S20", bound("X", "w", "a1", "a2"), {"SCHED-026", "TOPO-039"}, id="one of two gangs waits"),
        pytest.param("GS-S17", bound("G", "P", "a1"), {"SCHED-020"}, id="domains within domains, in part"),
    ],
)
def test_requirements_about_domains_are_broken_by_their_subject(name, steps, breaks):
    assert broken_requirements(scene(name, *steps)) == breaks


def test_room_reserved_for_a_gang_in_a_rack_breaks_no_requirement_about_racks():
    scenario = ALL["GS-S49"]
    racks = {"g1": ("r1", 0), "g2": ("r1", 8), "g3": ("r2", 0), "g4": ("r2", 8)}
    steps = [
        step
        for gang, (rack, first) in racks.items()
        for step in bound(gang, "w", *(f"{rack}-{number}" for number in range(first, first + 8)))
    ]
    assert broken_requirements(scene("GS-S49", *steps)) == set()
    outcome = scene("GS-S49", *steps).outcome
    instance = scenario.instance.after(SchedulingOutcome(), scenario.change)
    played = ScenarioResult(scenario, instance, True, [Move(0.0, step) for step in steps], outcome, 5.0, {})
    assert broken_requirements(played) == {judging.WITHHELD_ROOM}


@pytest.mark.parametrize("name", [name for name, scenario in ALL.items() if not scenario.instance.has_zero_minimum])
def test_every_breach_breaks_a_requirement(name):
    played = scene(name)
    rules = {rule for rule, level in judging.REQUIREMENT_BY_RULE if level == "MUST"} | {"GS-03", "OR-2"}
    breaches = [Breach(rule, gang.name, "") for rule in sorted(rules) for gang in played.instance.gangs]
    attributed = judging.breaches_by_requirement(played, breaches)
    assert {breach for broken_rules in attributed.values() for breach in broken_rules} >= set(breaches)
