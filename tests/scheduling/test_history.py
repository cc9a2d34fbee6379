"""Tests that the oracle reports violations in a history of bindings and deletions whose outcome is permitted."""

from __future__ import annotations

import pytest

from conformance.grove.scheduling import history, scenarios
from conformance.grove.scheduling.history import PodBound, PodDeleted

ALL = {scenario.id: scenario.instance for scenario in scenarios.load()}


def rules(name, *steps):
    return [breach.rule for breach in history.find_breaches(ALL[name], steps)]


def test_a_placement_in_order_has_no_breach():
    pods = [PodBound(f"p{i}", "A", "w", node) for i, node in enumerate(("n1", "n1", "n2", "n2"))]
    assert rules("GS-S01", *pods) == []


def test_a_history_that_ends_halfway_is_a_torn_gang():
    assert rules("GS-S01", PodBound("p", "A", "w", "n1")) == ["GS-20"]


def test_evicting_a_part_of_a_complete_gang_is_a_breach():
    pods = [PodBound(f"p{i}", "A", "w", node) for i, node in enumerate(("n1", "n1", "n2", "n2"))]
    assert rules("GS-S01", *pods, PodDeleted("p3")) == ["GS-31"]
    assert rules("GS-S01", *pods, *(PodDeleted(f"p{i}") for i in range(4))) == ["GS-26"]


def test_a_scaled_gang_bound_before_its_base_gang_is_reported():
    base = [PodBound(f"p{i}", "base", "w", "n1") for i in range(3)]
    assert rules("GS-S22", PodBound("s", "s2", "w", "n1"), *base) == ["GS-03"]
    assert rules("GS-S22", *base, PodBound("s", "s2", "w", "n1")) == []


def test_a_temporarily_overcommitted_node_is_reported():
    pods = [PodBound("h1", "H", "w", "n1"), PodBound("h2", "H", "w", "n1")]
    evictions = [PodDeleted("l1"), PodDeleted("l2")]
    assert rules("GS-S31", *pods, *evictions)[:1] == ["OR-1"]
    assert rules("GS-S31", *evictions, *pods) == []


def test_a_reverted_binding_no_longer_counts():
    assert rules("GS-S02", PodBound("p", "A", "w", "n1"), PodDeleted("p")) == []


@pytest.mark.parametrize("evicted", [["l1"], ["l1", "l2"]])
def test_evictions_without_a_preemptor_are_forbidden(evicted):
    assert "GS-30" in rules("GS-S31", *map(PodDeleted, evicted))
