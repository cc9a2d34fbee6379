"""Tests of INV-001, INV-002 and INV-005. Each rule is tested with histories where it holds, where it is violated, and
where it cannot be judged."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.invariants.result import RuleResult

A = {"gang": "s-0", "clique": "s-0-a"}
W = {"gang": "s-0-g-0", "clique": "s-0-g-1-w", "extra": {labels.BASE_GANG: "s-0"}}


def verdict(story, id: str) -> RuleResult:
    [result] = invariants.judge(story.history, rule_ids=[id])
    return result


def test_a_pod_ungated_after_its_gang_was_complete_is_right(story):
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a1", **A)
    assert verdict(story, "INV-001").holds is True
    assert verdict(story, "INV-005").holds is True


def test_a_pod_that_stays_gated_is_not_judged(story):
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    for id in ("INV-001", "INV-002", "INV-005"):
        assert verdict(story, id).holds is None


def test_a_pod_ungated_before_its_gang_exists_is_wrong(story):
    story.pod("a1", **A, gated=True)
    ungating = story.pod("a1", **A)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    result = verdict(story, "INV-001")
    assert result.holds is False
    assert result.records[-1] is ungating
    assert "did not exist" in result.reason


def test_a_pod_created_without_a_gate_is_wrong(story):
    story.pod("a1", **A)
    assert verdict(story, "INV-001").holds is False
    assert verdict(story, "INV-005").holds is False


def test_a_pod_that_a_list_shows_ungated_first_is_not_judged(story):
    story.pod("a1", **A, listed=True)
    assert verdict(story, "INV-001").holds is None


def test_a_pod_ungated_before_it_is_referenced_is_wrong(story):
    story.pod("a1", **A, gated=True)
    story.pod("a2", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a2", **A)
    result = verdict(story, "INV-001")
    assert result.holds is False
    assert "did not reference it" in result.reason


def test_a_reference_in_another_pod_group_does_not_count(story):
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-b": (1, ["a1"])})
    story.pod("a1", **A)
    assert verdict(story, "INV-001").holds is False


def test_a_pod_ungated_before_initialized_is_wrong(story):
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])}, initialized=False)
    story.pod("a1", **A)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    result = verdict(story, "INV-005")
    assert result.holds is False
    assert "not Initialized" in result.reason
    assert verdict(story, "INV-001").holds is True


def test_the_order_of_the_server_counts_and_not_that_of_arrival(story):
    story.pod("a1", **A, gated=True, revision=1)
    story.pod("a1", **A, revision=9)
    story.gang("s-0", {"s-0-a": (1, ["a1"])}, revision=5)
    assert verdict(story, "INV-001").holds is True


def test_a_gang_that_became_complete_just_after_is_seen_although_it_arrived_before(story):
    story.pod("a1", **A, gated=True, revision=1)
    story.gang("s-0", {"s-0-a": (1, ["a1"])}, revision=9)
    story.pod("a1", **A, revision=5)
    assert verdict(story, "INV-001").holds is False


def test_every_rule_is_unknown_if_versions_contradict_the_arrivals(story):
    story.pod("a1", **A, gated=True, revision=50)
    story.gang("s-0", {"s-0-a": (1, ["a1"])}, revision=3, after=60)
    story.pod("a1", **A, revision=60)
    assert verdict(story, "INV-001").holds is None


def test_an_operator_may_act_on_a_slightly_older_state(story):
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.delete("podgangs", "s-0")
    story.pod("a1", **A)
    assert verdict(story, "INV-001").holds is True


def base_and_scaled(story) -> None:
    story.pod("a1", **A, gated=True)
    story.pod("w1", **W, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.gang("s-0-g-0", {"s-0-g-1-w": (1, ["w1"])})
    story.pod("a1", **A)


def test_a_scaled_pod_ungated_after_its_base_gang_was_bound_is_right(story):
    base_and_scaled(story)
    story.pod("a1", **A, node="n1")
    story.pod("w1", **W)
    assert verdict(story, "INV-002").holds is True


def test_a_scaled_pod_ungated_before_its_base_gang_is_bound_is_wrong(story):
    base_and_scaled(story)
    story.pod("w1", **W)
    story.pod("a1", **A, node="n1")
    result = verdict(story, "INV-002")
    assert result.holds is False
    assert "s-0-a has 0 of 1 bound" in result.reason
    assert verdict(story, "INV-001").holds is True


def test_every_pod_group_of_the_base_gang_counts(story):
    base_and_scaled(story)
    story.gang("s-0", {"s-0-a": (1, ["a1"]), "s-0-b": (1, [])})
    story.pod("a1", **A, node="n1")
    story.pod("w1", **W)
    assert verdict(story, "INV-002").holds is False


def test_a_scaled_pod_without_the_label_is_known_by_its_index(story):
    extra = {
        labels.GROUP: "s-0-g",
        labels.GROUP_INDEX: "1",
        labels.SET_INDEX: "0",
        labels.PART_OF: "s",
    }
    plain = {**W, "extra": extra}
    story.owned("podcliquescalinggroups", "s-0-g", None, minAvailable=1, replicas=2)
    story.pod("w1", **plain, gated=True)
    story.gang("s-0", {"s-0-a": (1, [])})
    story.gang("s-0-g-0", {"s-0-g-1-w": (1, ["w1"])})
    story.pod("w1", **plain)
    assert verdict(story, "INV-002").holds is False


def test_a_base_gang_that_lost_a_pod_has_been_bound_all_the_same(story):
    base_and_scaled(story)
    story.pod("w2", **{**W, "clique": "s-0-g-1-v"}, gated=True)
    story.gang("s-0-g-0", {"s-0-g-1-w": (1, ["w1"]), "s-0-g-1-v": (1, ["w2"])})
    story.pod("a1", **A, node="n1")
    story.delete("pods", "a1")
    story.pod("w1", **W)
    story.pod("w2", **{**W, "clique": "s-0-g-1-v"}, after=20)
    assert verdict(story, "INV-002").holds is True


def test_a_recreated_base_gang_has_not_been_bound(story):
    base_and_scaled(story)
    story.pod("a1", **A, node="n1")
    story.delete("podgangs", "s-0")
    story.delete("pods", "a1")
    story.pod("a2", **A, gated=True, after=20)
    story.gang("s-0", {"s-0-a": (1, ["a2"])})
    story.pod("w1", **W)
    assert verdict(story, "INV-002").holds is False


def test_events_that_a_broken_watch_may_have_missed_are_not_violations(story):
    """The gang got its reference while its watch was broken, so the gang's next record comes from a list."""
    story.pod("a1", **A, gated=True)
    story.pod("a2", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a2", **A)
    for id in ("INV-001", "INV-005"):
        assert (id, verdict(story, id).holds is False) == (id, id == "INV-001")
    story.gang("s-0", {"s-0-a": (1, ["a1", "a2"])}, listed=True)
    for id in ("INV-001", "INV-005"):
        assert verdict(story, id).holds is True


def test_a_completely_watched_change_is_a_violation_if_the_gang_remains(story):
    story.pod("a1", **A, gated=True)
    story.gang("s-0", {"s-0-a": (1, [])})
    story.pod("a1", **A)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.gang("s-0", {"s-0-a": (1, ["a1"])}, listed=True)
    assert verdict(story, "INV-001").holds is False


@pytest.mark.parametrize("gate", [labels.GATE, "scheduling.example.org/incomplete"])
def test_a_gate_of_any_name_is_the_operators(story, gate):
    """No document specifies the name of the gate (GANG-026)."""
    tags = {labels.GANG: "s-0", labels.CLIQUE: "s-0-a"}
    foreign = {"name": "example.com/quota"}
    for gates in ([{"name": gate}, foreign], [foreign]):
        story.record("pods", "a1", {"metadata": {"labels": tags}, "spec": {"schedulingGates": gates}})
    assert verdict(story, "GANG-005").holds is True
    result = verdict(story, "INV-001")
    assert result.holds is False and "was ungated" in result.reason


def test_a_gate_of_the_suite_is_not_the_operators(story):
    gates = [{"name": f"{labels.FOREIGN_PREFIX}quota"}]
    story.record("pods", "a1", {"metadata": {"labels": {labels.GANG: "s-0"}}, "spec": {"schedulingGates": gates}})
    assert verdict(story, "GANG-005").holds is False
