"""Tests of INV-003 and INV-004. Each rule is tested with histories where it holds, where it is violated, and where it
cannot be judged."""

from __future__ import annotations

from conformance import invariants
from conformance.history.gangs import Gangs
from conformance.invariants.result import RuleResult
from conformance.invariants.settled_gangs import SETTLED_SECONDS, NoGangHeldBelowMinimum

A = {"gang": "s-0", "clique": "s-0-a"}
B = {"gang": "s-0", "clique": "s-0-b"}


def verdict(story, *, seconds: float = SETTLED_SECONDS + 1, settle: float = 0) -> RuleResult:
    """Return the result of INV-003 `seconds` after the last record."""
    rule, gangs = NoGangHeldBelowMinimum(settle), Gangs()
    for record in story.history.records():
        rule.observe(record, gangs)
        gangs.apply(record)
    return rule.result(gangs, story.at + seconds)


def owned(story) -> RuleResult:
    [result] = invariants.judge(story.history, rule_ids=["INV-004"])
    return result


def two_groups(story) -> None:
    story.gang("s-0", {"s-0-a": (1, ["a1"]), "s-0-b": (1, ["b1"])})
    story.pod("a1", **A)
    story.pod("b1", **B)


def test_a_gang_bound_whole_is_right(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    story.pod("b1", **B, node="n1")
    assert verdict(story).holds is True


def test_a_gang_without_bound_pods_is_right(story):
    two_groups(story)
    assert verdict(story).holds is True


def test_a_gang_bound_in_part_is_wrong_once_settled(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    result = verdict(story)
    assert result.holds is False
    assert [record.name for record in result.records] == ["a1"]
    assert "s-0-b has 0 of 1 bound" in result.reason


def test_a_gang_just_bound_in_part_cannot_be_judged_yet(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    assert verdict(story, seconds=1).holds is None


def test_a_slow_scheduler_has_longer_to_bind_the_rest(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    assert verdict(story, settle=SETTLED_SECONDS + 5).holds is None
    assert verdict(story, settle=SETTLED_SECONDS + 5, seconds=SETTLED_SECONDS + 6).holds is False
    assert verdict(story, settle=1).holds is False


def test_a_partial_binding_that_is_being_undone_is_right(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    story.pod("a1", **A, node="n1", terminating=True)
    assert verdict(story).holds is True


def test_a_gang_that_was_whole_once_may_lose_pods(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    story.pod("b1", **B, node="n1")
    story.delete("pods", "b1")
    assert verdict(story).holds is True


MOVED = {"gang": "s-0-1795511111", "clique": "s-0-a"}


def take_over(story, gang: str = MOVED["gang"]) -> None:
    """Record a new gang that takes over a bound pod while its other pod is being replaced."""
    story.gang(gang, {"s-0-a": (1, ["a1"]), "s-0-b": (1, ["b2"])})
    story.pod("a1", gang=gang, clique="s-0-a", node="n1")
    story.pod("b1", **B, node="n1", terminating=True)


def test_a_gang_that_takes_over_bound_pods_was_admitted_before(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    story.pod("b1", **B, node="n1")
    take_over(story)
    assert verdict(story).holds is True


def test_a_gang_that_takes_over_pods_from_several_gangs_was_admitted_before(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    story.pod("b1", **B, node="n1")
    take_over(story)
    take_over(story, "s-0-1795522222")
    assert verdict(story).holds is True


def test_a_bound_pod_without_a_gang_is_not_a_binding_of_the_gang_that_adopts_it(story):
    story.pod("a1", clique="s-0-a", node="n1")
    take_over(story)
    assert verdict(story).holds is True


def test_pods_that_were_bound_too_early_count_in_another_gang_as_well(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    take_over(story)
    assert verdict(story).holds is False


def test_a_pod_that_joins_a_gang_before_it_is_bound_proves_nothing(story):
    two_groups(story)
    story.pod("a1", **A, node="n1")
    story.pod("b1", **B, node="n1")
    story.gang(MOVED["gang"], {"s-0-a": (1, ["a2"]), "s-0-b": (1, ["b2"])})
    story.pod("a2", **A)
    story.pod("a2", **MOVED)
    story.pod("a2", **MOVED, node="n1")
    assert verdict(story).holds is False


def test_without_a_gang_there_is_nothing_to_hold(story):
    story.pod("a1", **A, node="n1")
    assert verdict(story).holds is None


def tree(story) -> None:
    story.owned("podcliquesets", "s", None)
    story.owned("podcliquescalinggroups", "s-0-g", ("podcliquesets", "s"))
    story.owned("podcliques", "s-0-a", ("podcliquesets", "s"))
    story.owned("podcliques", "s-0-g-0-w", ("podcliquescalinggroups", "s-0-g"))
    story.gang("s-0", {}, owner=("podcliquesets", "s"))
    story.pod("a1", **A, owner=("podcliques", "s-0-a"))
    story.pod("w1", gang="s-0", clique="s-0-g-0-w", owner=("podcliques", "s-0-g-0-w"))


def test_a_whole_tree_is_right(story):
    tree(story)
    assert owned(story).holds is True


def test_a_gang_controlled_by_a_map_of_the_set_is_right(story):
    tree(story)
    story.owned("podgangmaps", "s-0", ("podcliquesets", "s"))
    story.gang("s-1", {}, owner=("podgangmaps", "s-0"))
    assert owned(story).holds is True


def test_a_gang_controlled_by_a_map_that_is_not_of_the_set_is_wrong(story):
    tree(story)
    story.owned("podgangmaps", "s-0", None)
    story.gang("s-1", {}, owner=("podgangmaps", "s-0"))
    assert "podgangmaps/s-0, which has no controller reference" in owned(story).reason


def test_a_map_without_a_controller_is_not_judged(story):
    tree(story)
    story.owned("podgangmaps", "s-0", None)
    assert owned(story).holds is True


def test_a_pod_without_a_controller_is_wrong(story):
    tree(story)
    story.pod("a2", **A)
    result = owned(story)
    assert result.holds is False
    assert "pods/a2 has no controller" in result.reason


def test_a_pod_of_a_clique_without_a_controller_is_wrong(story):
    tree(story)
    story.owned("podcliques", "s-0-x", None)
    assert owned(story).holds is False


def test_a_controller_that_the_suite_has_removed_is_not_missed(story):
    tree(story)
    story.owned("podcliques", "s-0-x", None)
    lost = next(record.uid for record in story.history.records("podcliques") if record.name == "s-0-x")
    story.history.origins.stripped = {lost}
    assert owned(story).holds is True


def test_a_pod_controlled_by_the_set_is_wrong(story):
    tree(story)
    story.pod("a2", **A, owner=("podcliquesets", "s"))
    assert "is controlled by podcliquesets/s" in owned(story).reason


def test_an_owner_that_never_existed_is_wrong(story):
    tree(story)
    story.pod("a2", **A, owner=("podcliques", "s-0-zz"))
    assert "never existed" in owned(story).reason


def test_an_owner_that_is_recorded_later_is_correct(story):
    story.owned("podcliquesets", "s", None)
    pod = {
        "metadata": {
            "labels": {"grove.io/podclique": "s-0-a"},
            "ownerReferences": [{"uid": "uid-3", "controller": True}],
        }
    }
    story.record("pods", "a1", pod)
    story.owned("podcliques", "s-0-a", ("podcliquesets", "s"))
    assert owned(story).holds is True


def test_orphans_of_a_deleted_owner_are_not_a_fault(story):
    tree(story)
    story.delete("podcliques", "s-0-a")
    story.pod("a1", **A)
    assert owned(story).holds is True


def test_a_reference_that_disappears_while_the_owner_exists_is_wrong(story):
    tree(story)
    story.pod("a1", **A)
    assert owned(story).holds is False


def test_a_foreign_pod_is_not_judged(story):
    story.pod("foreign")
    assert owned(story).holds is None
