"""Tests that the reference's scheduler comes to rest only in outcomes that the oracle permits."""

from __future__ import annotations

import pytest
from hypothesis import example, given, note

from conformance.grove.scheduling import outcomes, scenarios, strategies
from conformance.grove.scheduling.instance import HOST, Gang, Group, Instance, Node, is_admitted
from conformance.grove.scheduling.rules import verdict
from tests.scheduling.driving import Driver, is_drivable, settled_outcome

LEVELS = ("block", "rack", "host")
ALL = [scenario for scenario in scenarios.load() if is_drivable(scenario.instance)]


def check(instance, expected, outcome):
    breaches = verdict(instance, outcome)
    message = f"{scenarios.notation(outcome)}\n" + "\n".join(map(str, breaches))
    assert not breaches, message
    placed = {gang.name for gang in instance.gangs if is_admitted(instance, outcome, gang)}
    assert placed >= set(expected.always) and not placed & set(expected.never), message
    assert expected.admitted in (None, len(placed)), message
    if expected.victims:
        assert outcome.evicted in expected.victims, message


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.id) for s in ALL])
def test_the_scheduler_settles_the_scenarios_of_the_specification_correctly(scenario):
    outcome = settled_outcome(scenario.instance, LEVELS)
    check(scenario.instance, scenario.expected, outcome)
    if scenario.change is not None:
        after = scenario.instance.after(outcome, scenario.change)
        check(after, scenario.expected_after_change, settled_outcome(after, LEVELS))


@given(strategies.instances())
def test_the_scheduler_settles_generated_instances_correctly(instance):
    driver = Driver(instance, strategies.LEVELS)
    outcome = driver.run()
    assert not any(shortfall.kind == "effort" for plan in driver.plans for shortfall in plan.waiting.values())
    # SHOULD rules are also judged. Otherwise a violation would occasionally appear on real nodes.
    scaled = {gang.name for gang in instance.gangs if gang.base}
    # While capacity is being freed for its base gang, no capacity is reserved for a scaled gang.
    scaled_gangs = scaled if outcome.evicted else set()
    if breaches := [b for b in verdict(instance, outcome) if b.rule != "OR-6" or b.gang not in scaled_gangs]:
        note(scenarios.to_yaml(instance, about="; ".join(map(str, breaches))))
        note(f"the scheduler: {scenarios.notation(outcome)}")
    assert not breaches


def _two_groups_that_prefer_one_host() -> Instance:
    """Three hosts are enough: the two hosts with three GPUs hold the pods of group p, and the host with two GPUs holds
    both pods of group q."""
    nodes = tuple(Node(f"n{i}", {"gpus": gpus}, {HOST: f"n{i}"}) for i, gpus in enumerate((3, 1, 3, 2)))
    groups = (Group("p", 2, 2, {"gpus": 3}), Group("q", 2, 2, {"gpus": 1}))
    return Instance(nodes, (Gang("g0", groups, preferred=HOST),), name="example")


@given(strategies.preferences())
@example(_two_groups_that_prefer_one_host())
def test_generated_preferences_are_met_as_well_as_possible(instance):
    outcome = Driver(instance, strategies.LEVELS).run()
    best_score = max(
        (outcomes.score(instance, permitted) for permitted in outcomes.permitted_outcomes(instance)),
        default=1.0,
    )
    if (score := outcomes.score(instance, outcome)) < best_score:
        note(scenarios.to_yaml(instance, about=f"preferences are met by {score:.2f}, and could be by {best_score:.2f}"))
        note(f"the scheduler: {scenarios.notation(outcome)}")
    assert score == best_score
