"""The oracle against the specification's own tables: as many outcomes as it lists, and none of the wrong ones."""

from __future__ import annotations

from collections import Counter

import pytest

from conformance.grove.scheduling import outcomes, scenarios
from conformance.grove.scheduling.instance import Outcome, admitted
from conformance.grove.scheduling.rules import forbidden, verdict

ALL = scenarios.load()
LISTED = [scenario for scenario in ALL if scenario.enumerable]


def named(cases):
    return [pytest.param(scenario, id=scenario.id) for scenario in cases]


def placed(scenario, outcome):
    return {gang.name for gang in scenario.instance.gangs if admitted(scenario.instance, outcome, gang)}


def test_each_id_is_given_once():
    assert [name for name, count in Counter(scenario.id for scenario in ALL).items() if count > 1] == []


def test_every_scenario_of_the_specification_is_there():
    wanted = {f"GS-S{n:02}" for n in range(1, 53)}
    assert wanted <= {"-".join(scenario.id.split("-")[:2]) for scenario in ALL}


@pytest.mark.parametrize("scenario", named(LISTED))
def test_as_many_outcomes_are_permitted_as_the_specification_says(scenario):
    found = list(outcomes.permitted(scenario.instance))
    assert found
    shown = "\n".join(map(scenarios.notation, found))
    expected = scenario.expected
    if expected.must is not None:
        assert len(found) == expected.must, shown
    if expected.should is not None:
        assert len(outcomes.recommended(scenario.instance)) == expected.should, shown
    if expected.victims:
        good = [o for o in found if not verdict(scenario.instance, o)]
        # A scheduler that never preempts is right, too.
        assert {o.evicted for o in good} | {frozenset()} == {*expected.victims, frozenset()}, shown
    for outcome in found:
        bound = placed(scenario, outcome)
        assert bound >= set(expected.always) and not bound & set(expected.never), shown
        assert expected.admitted in (None, len(bound)), shown


@pytest.mark.parametrize("scenario", named(s for s in ALL if s.expected.forbidden))
def test_wrong_outcomes_are_forbidden(scenario):
    for outcome in scenario.expected.forbidden:
        assert forbidden(verdict(scenario.instance, outcome)), scenarios.notation(outcome)


@pytest.mark.parametrize("scenario", named(ALL))
def test_what_is_printed_reads_back(scenario, tmp_path):
    (tmp_path / "one.yaml").write_text(scenarios.shown(scenario.instance, scenario.about))
    (again,) = scenarios.read(tmp_path / "one.yaml")
    assert again.instance == scenario.instance


def test_a_torn_gang_is_told_with_its_rule():
    (torn,) = [s for s in ALL if s.id == "GS-S02"]
    breaches = verdict(torn.instance, Outcome({"A": {"w": {"n1": 2}}}))
    assert [breach.rule for breach in breaches] == ["GS-20"] and "w 2 of 4" in str(breaches[0])
