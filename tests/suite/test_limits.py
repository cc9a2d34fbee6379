"""Tests that `explain` prints the time limits of the conformance tests."""

from __future__ import annotations

import pytest

from conformance.suite.registry import declarations, limits, requirement
from conformance.suite.registry.limits import Wait
from conformance.suite.registry.requirement import Level


def test_limits_are_numbers_constants_defaults_or_expressions() -> None:
    update = limits.of_requirement("UPD-001")
    assert Wait("set available", 150.0) in update, "a constant"
    assert Wait("deleted pod replaced", 60.0) in update, "a default"
    assert Wait("{…}: cliques and groups report the end", 30.0) in update, "a number, and a name that is filled in"
    played = limits.of_scene("conformance.testing.playing", "ScenarioRunner")
    assert Wait("every scenario is at rest where it may be", "limit_seconds") in played, "an expression"


def test_only_the_steps_that_a_test_names_count_if_it_names_any() -> None:
    assert [wait.step for wait in limits.of_requirement("GANG-002")] == ["statuses at rest"]


def test_waits_of_one_limit_are_shown_together() -> None:
    waits = [Wait("a", 60.0), Wait("b", "within"), Wait("c", 60.0), Wait("d", 1.5)]
    assert limits.in_words(waits) == "1.5 s for “d”; 60 s for “a”, “c”; `within` s for “b”"


@pytest.mark.parametrize("profile", ["core", "gang", "startup", "scaling", "termination", "update"])
def test_each_must_whose_scene_waits_names_its_limits(profile: str) -> None:
    entries = [entry for entry in requirement.load().requirements.values() if entry.profile == profile]
    must = [entry.id for entry in entries if entry.level is Level.MUST and entry.id in declarations.tests()]
    assert must and [id for id in must if not limits.of_requirement(id)] == []
