"""Tests of the oracle against the specification's tables: it permits as many outcomes as the tables list, and none of
the forbidden outcomes."""

from __future__ import annotations

from collections import Counter

import pytest

from conformance.grove.scheduling import outcomes, scenarios
from conformance.grove.scheduling.instance import SchedulingOutcome, is_admitted
from conformance.grove.scheduling.rules import must_breaches, verdict

ALL = scenarios.load()
LISTED = [scenario for scenario in ALL if scenario.enumerable]


def named(cases):
    return [pytest.param(scenario, id=scenario.id) for scenario in cases]


def placed(scenario, outcome):
    return {gang.name for gang in scenario.instance.gangs if is_admitted(scenario.instance, outcome, gang)}


def test_each_id_occurs_once():
    assert [name for name, count in Counter(scenario.id for scenario in ALL).items() if count > 1] == []


def test_every_scenario_of_the_specification_exists():
    expected = {f"GS-S{n:02}" for n in range(1, 53)}
    assert expected <= {"-".join(scenario.id.split("-")[:2]) for scenario in ALL}


@pytest.mark.parametrize("scenario", named(LISTED))
def test_the_oracle_permits_as_many_outcomes_as_the_specification(scenario):
    permitted = list(outcomes.permitted_outcomes(scenario.instance))
    assert permitted
    text = "\n".join(map(scenarios.notation, permitted))
    expected = scenario.expected
    if expected.must is not None:
        assert len(permitted) == expected.must, text
    if expected.recommended is not None:
        assert len(outcomes.recommended_outcomes(scenario.instance)) == expected.recommended, text
    if expected.victims:
        without_breaches = [o for o in permitted if not verdict(scenario.instance, o)]
        # A scheduler that never preempts is also correct.
        assert {o.evicted for o in without_breaches} | {frozenset()} == {*expected.victims, frozenset()}, text
    for outcome in permitted:
        bound = placed(scenario, outcome)
        assert bound >= set(expected.always) and not bound & set(expected.never), text
        assert expected.admitted in (None, len(bound)), text


@pytest.mark.parametrize("scenario", named(s for s in ALL if s.expected.forbidden))
def test_wrong_outcomes_are_forbidden(scenario):
    for outcome in map(SchedulingOutcome, scenario.expected.forbidden):
        assert must_breaches(verdict(scenario.instance, outcome)), scenarios.notation(outcome)


@pytest.mark.parametrize("scenario", named(ALL))
def test_a_printed_scenario_reads_back_unchanged(scenario, tmp_path):
    (tmp_path / "one.yaml").write_text(scenarios.to_yaml(scenario.instance, scenario.about))
    (reread,) = scenarios.read(tmp_path / "one.yaml")
    assert reread.instance == scenario.instance


def test_a_torn_gang_is_reported_with_its_rule():
    (scenario,) = [s for s in ALL if s.id == "GS-S02"]
    breaches = verdict(scenario.instance, SchedulingOutcome({"A": {"w": {"n1": 2}}}))
    assert [breach.rule for breach in breaches] == ["GS-20"] and "w 2 of 4" in str(breaches[0])


EXTRA_PODS_SCENARIO = """
scenarios:
- id: spares
  about: A pod above its minimum has a higher priority than a gang that would suffice as well.
  nodes:
  - {name: n0, gpus: 2}
  - {name: n1, gpus: 2}
  running:
  - {name: big-0, node: n0, gang: big, group: p}
  - {name: big-1, node: n0, gang: big, group: p}
  - {name: low-0, node: n1, gang: low, group: p}
  gangs:
  - {name: new, priority: 5, groups: [{name: p, min: 2, desired: 2, gpus: 1}]}
  - {name: big, priority: 3, groups: [{name: p, min: 1, desired: 2, gpus: 1}]}
  - {name: low, groups: [{name: p, min: LOW, desired: 1, gpus: 1}]}
"""


@pytest.mark.parametrize(
    ("minimum", "evicted", "wrong"),
    [
        ("1", "big-0", ""),
        ("1", "low-0", "evicted a gang where pods above minimums would have sufficed"),
        ("0", "low-0", ""),
        ("0", "big-0", "evicted pods of a higher priority than necessary"),
    ],
)
def test_extra_pods_are_evicted_before_gangs_and_lower_priorities_first(tmp_path, minimum, evicted, wrong):
    path = tmp_path / "spares.yaml"
    path.write_text(EXTRA_PODS_SCENARIO.replace("LOW", minimum))
    [scenario] = scenarios.read(path)
    node = "n0" if evicted == "big-0" else "n1"
    placed = {"n1": 2} if node == "n1" else {"n0": 1, "n1": 1}
    outcome = SchedulingOutcome({"new": {"p": placed}}, frozenset({evicted}))
    assert [breach.text for breach in verdict(scenario.instance, outcome)] == [wrong] * bool(wrong)


def test_a_pod_on_a_node_of_another_scenario_is_a_breach():
    scenario = next(s for s in ALL if any(scope.preferred for gang in s.instance.gangs for scope in gang.scopes))
    gang = next(gang for gang in scenario.instance.gangs if any(scope.preferred for scope in gang.scopes))
    outcome = SchedulingOutcome({gang.name: {group.name: {"elsewhere": group.minimum} for group in gang.groups}})
    assert outcomes.score(scenario.instance, outcome) > 0
    assert any("its nodeSelector excludes" in breach.text for breach in verdict(scenario.instance, outcome))
