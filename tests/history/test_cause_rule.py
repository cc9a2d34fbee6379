"""Tests of INV-009 with histories where it holds, where it is violated, and where it cannot be judged, and with each
cause that excuses a deletion."""

from __future__ import annotations

from typing import Any

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.invariants.deletion_cause import GRACE_SECONDS
from conformance.invariants.result import RuleResult

LABELS = {labels.PART_OF: "s", labels.SET_INDEX: "0"}
PODS = ("a1", "a2", "a3")


def verdict(story) -> RuleResult:
    [result] = invariants.judge(story.history, rule_ids=["INV-009"])
    return result


def pod_options(**changes: Any) -> dict[str, Any]:
    return {"gang": "s-0", "clique": "s-0-a", "extra": LABELS, "owner": ("podcliques", "s-0-a"), **changes}


def record_ready_gang(story) -> None:
    """Record a gang with minReplicas 2 and three pods, all of which are Ready."""
    story.node("n1", gpus="8")
    story.owned("podcliquesets", "s", None, replicas=1, template={"x": 1})
    story.owned("podcliques", "s-0-a", ("podcliquesets", "s"), replicas=3)
    story.gang("s-0", {"s-0-a": (2, PODS)})
    for name in PODS:
        story.pod(name, **pod_options())
    for name in PODS:
        story.pod(name, **pod_options(node="n1", ready=True))


def terminate(story, name: str = "a3", **changes: Any) -> None:
    story.pod(name, **pod_options(node="n1", ready=True, terminating=True, **changes))


def test_a_gang_whose_pods_remain_is_correct(story):
    record_ready_gang(story)
    assert verdict(story).holds is True


def test_a_deletion_that_nothing_asked_for_is_wrong(story):
    record_ready_gang(story)
    terminate(story)
    result = verdict(story)
    assert result.holds is False
    assert "pod a3 was Ready, gang s-0 was sound, and nothing asked for its deletion" in result.reason


def test_a_pod_that_disappears_at_once_is_wrong_too(story):
    record_ready_gang(story)
    story.delete("pods", "a3")
    assert verdict(story).holds is False


def test_deletions_by_the_suite_are_excused(story):
    record_ready_gang(story)
    story.history.origins.excused.add(story.history.records("pods", "a3")[0].uid)
    terminate(story)
    assert verdict(story).holds is True


def test_a_later_pod_of_the_same_name_is_not_excused(story):
    record_ready_gang(story)
    story.history.origins.excused.add(story.history.records("pods", "a3")[0].uid)
    terminate(story)
    story.delete("pods", "a3")
    story.pod("a3", **pod_options())
    story.pod("a3", **pod_options(node="n1", ready=True))
    story.node("n1", gpus="8", after=2 * GRACE_SECONDS)
    terminate(story)
    assert verdict(story).holds is False


def test_a_scale_in_is_a_cause_of_as_many_deletions(story):
    record_ready_gang(story)
    story.owned("podcliques", "s-0-a", ("podcliquesets", "s"), replicas=2)
    terminate(story)
    assert verdict(story).holds is True
    terminate(story, "a2")
    assert verdict(story).holds is False


def test_a_scale_in_that_was_taken_back_is_a_cause_for_a_moment(story):
    record_ready_gang(story)
    story.owned("podcliques", "s-0-a", ("podcliquesets", "s"), replicas=2)
    story.owned("podcliques", "s-0-a", ("podcliquesets", "s"), replicas=3)
    terminate(story)
    assert verdict(story).holds is True
    terminate(story, "a2", after=GRACE_SECONDS + 1)
    assert verdict(story).holds is False


@pytest.mark.parametrize(
    "cause",
    [
        lambda story: story.delete("podcliques", "s-0-a"),
        lambda story: story.delete("podgangs", "s-0"),
        lambda story: story.delete("podcliquesets", "s"),
        lambda story: story.owned("podcliquesets", "s", None, replicas=0, template={"x": 1}),
        lambda story: story.owned("podcliquesets", "s", None, replicas=1, template={"x": 2}),
        lambda story: story.owned("podcliques", "s-0-a", ("podcliquesets", "s"), replicas=3, podSpec={"x": 2}),
        lambda story: story.pod("vip", priority=5),
        lambda story: story.node("n1", ready=False),
        lambda story: story.delete("nodes", "n1"),
    ],
    ids=[
        "clique",
        "gang",
        "set",
        "scaled in",
        "template",
        "clique's template",
        "priority",
        "node not ready",
        "node gone",
    ],
)
def test_causes(story, cause):
    record_ready_gang(story)
    cause(story)
    terminate(story)
    assert verdict(story).holds is True


def test_a_pod_of_another_template_than_its_clique_may_go(story):
    record_ready_gang(story)
    old = {**LABELS, labels.TEMPLATE_HASH: "old"}
    story.pod("a3", **pod_options(node="n1", ready=True, extra=old))
    story.pod("a3", **pod_options(node="n1", ready=True, extra=old, terminating=True))
    assert verdict(story).holds is True


def test_a_pod_of_the_same_priority_that_waits_is_not_a_cause(story):
    record_ready_gang(story)
    story.pod("other", gang="t-0", clique="t-0-a")
    terminate(story)
    assert verdict(story).holds is False


def test_a_pod_of_higher_priority_that_waited_long_ago_is_not_a_cause(story):
    record_ready_gang(story)
    story.pod("vip", priority=5)
    story.pod("vip", priority=5, node="n1")
    terminate(story, after=GRACE_SECONDS + 1)
    assert verdict(story).holds is False


def test_a_gang_below_its_floor_may_be_ended(story):
    record_ready_gang(story)
    for name in ("a1", "a2"):
        story.pod(name, **pod_options(node="n1"))
    terminate(story)
    assert verdict(story).holds is True


def test_a_gang_that_has_just_recovered_may_be_ended(story):
    record_ready_gang(story)
    for name in ("a1", "a2"):
        story.pod(name, **pod_options(node="n1"))
    story.pod("a2", **pod_options(node="n1", ready=True))
    terminate(story)
    assert verdict(story).holds is True


def test_gangs_of_the_same_replica_may_be_ended_together(story):
    record_ready_gang(story)
    scaled = {"gang": "s-0-g-0", "clique": "s-0-g-1-w", "extra": LABELS}
    story.gang("s-0-g-0", {"s-0-g-1-w": (1, ["w1"])})
    story.pod("w1", **scaled)
    story.pod("w1", **scaled, node="n1", ready=True)
    story.pod("w1", **scaled, node="n1")
    terminate(story)
    assert verdict(story).holds is True


def test_a_pod_that_does_not_serve_may_go(story):
    record_ready_gang(story)
    story.pod("a3", **pod_options(node="n1"))
    terminate(story)
    assert verdict(story).holds is True


def test_a_failed_pod_may_be_deleted_although_it_is_marked_ready(story):
    record_ready_gang(story)
    story.pod("a3", **pod_options(node="n1", ready=True, phase="Failed"))
    terminate(story, phase="Failed")
    assert verdict(story).holds is True


def test_nothing_is_known_before_a_gang_is_bound(story):
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.pod("a1", **pod_options())
    assert verdict(story).holds is None


@pytest.mark.parametrize("owned", [True, False], ids=["owned", "labeled"])
def test_pods_without_a_controller_are_judged(story, owned):
    """Pods that refer to their PodClique only by an owner reference without `controller`, or only by a label."""
    controlled = story.owners
    story.owners = lambda owner: (
        [{**reference, "controller": False} for reference in controlled(owner)] if owned else []
    )
    record_ready_gang(story)
    terminate(story)
    assert verdict(story).holds is False
