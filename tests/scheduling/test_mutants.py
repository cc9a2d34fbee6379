"""Tests that the oracle rejects every scheduling mutant, with the rule that the mutant breaks, in the scenarios under
fixtures/."""

from __future__ import annotations

from itertools import product

import pytest

from conformance.grove.scheduling import manifests, outcomes, scenarios
from conformance.grove.scheduling.instance import Instance
from conformance.grove.scheduling.rules import verdict
from mutants import replacement
from mutants.profiles import scheduler, scheduler_filters, scheduler_placement
from mutants.registry import MUTANTS
from tests.scheduling.driving import Driver, is_drivable
from tests.scheduling.test_agreement import LEVELS
from tests.scheduling.test_manifests import TESTBED, plan_objects

SCENARIOS = scenarios.load()
CLUSTER_MUTANTS = {
    "partial-bind": {"GS-20", "GS-21"},
    "extras-first": {"GS-26"},
    "capacity-withheld": {"GS-26"},
    "head-of-line": {"GS-26"},
    "extras-never": {"GS-26"},
}
"""Mutants that the conformance suite also catches, and the rules that the oracle reports for them."""
PLANNING = [(mutant.name, mutant.apply, set(mutant.rules)) for mutant in scheduler_placement.MUTANTS]
PLANNING += [(name, MUTANTS.all()[name].apply, rules) for name, rules in CLUSTER_MUTANTS.items()]


def rules_broken(instance: Instance) -> set[str]:
    if not is_drivable(instance):
        _, pods = plan_objects(instance)
        return {breach.rule for breach in verdict(instance, manifests.outcome(instance, pods, TESTBED))}
    driver = Driver(instance, LEVELS)
    try:
        outcome = driver.run()
    except AssertionError:  # the scheduler never comes to rest, so judge its current state
        outcome = driver.outcome()
    rules = {breach.rule for breach in verdict(instance, outcome)}
    if any(scope.preferred for gang in instance.gangs for scope in gang.scopes) and not rules:
        best = max(outcomes.score(instance, good) for good in outcomes.permitted_outcomes(instance))
        rules |= {"OR-9"} if outcomes.score(instance, outcome) < best else set()
    return rules


@pytest.mark.parametrize(("apply", "rules"), [pytest.param(apply, rules, id=name) for name, apply, rules in PLANNING])
def test_each_mutant_is_reported_with_its_rule(monkeypatch, apply, rules):
    modules = (replacement, scheduler_placement, scheduler_filters, scheduler)
    for module, name in product(modules, ("replace", "replace_unnoted")):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, lambda target, name, wrong: monkeypatch.setattr(target, name, wrong))
    monkeypatch.setattr(scheduler_placement, "note_calls", lambda owner, name: None)
    apply()
    reported = {scenario.id: broken for scenario in SCENARIOS if (broken := rules_broken(scenario.instance))}
    assert any(broken & rules for broken in reported.values()), reported


def test_without_a_mutant_nothing_is_reported():
    assert not any(rules_broken(scenario.instance) for scenario in SCENARIOS)
