"""Tests of INV-003 at any moment, INV-008 and INV-010. Each rule is tested with histories where it holds, where it is
violated, and where it cannot be judged."""

from __future__ import annotations

from conformance import invariants
from conformance.grove import labels
from conformance.invariants.result import RuleResult
from conformance.invariants.settled_gangs import SETTLED_SECONDS

A = {"gang": "s-0", "clique": "s-0-a"}
B = {"gang": "s-0", "clique": "s-0-b"}
SCALED = {"gang": "s-0-g-0", "clique": "s-0-g-1-w"}
BASED = {labels.BASE_GANG: "s-0"}
GROUP_LABELS = {labels.GROUP: "s-0-g", labels.GROUP_INDEX: "1", labels.SET_INDEX: "0", labels.PART_OF: "s"}
ONE = {"nvidia.com/gpu": "1"}


def verdict(story, id: str) -> RuleResult:
    [result] = invariants.judge(story.history, rule_ids=[id])
    return result


# -- INV-003 --------------------------------------------------------------------------------------------------------


def torn(story) -> None:
    story.gang("s-0", {"s-0-a": (1, ["a1"]), "s-0-b": (1, ["b1"])})
    story.pod("a1", **A)
    story.pod("b1", **B)
    story.pod("a1", **A, node="n1")


def test_a_gang_that_was_completed_long_after_a_partial_binding_is_wrong(story):
    torn(story)
    story.pod("b1", **B, node="n1", after=SETTLED_SECONDS + 1)
    result = verdict(story, "INV-003")
    assert result.holds is False
    assert "s-0-b has 0 of 1 bound" in result.reason


def test_a_gang_that_is_complete_at_once_is_correct(story):
    torn(story)
    story.pod("b1", **B, node="n1")
    story.pod("a1", **A, node="n1", after=SETTLED_SECONDS + 1)
    assert verdict(story, "INV-003").holds is True


def test_a_torn_gang_that_was_deleted_is_right(story):
    torn(story)
    story.delete("pods", "a1")
    story.delete("podgangs", "s-0")
    story.pod("b1", **B, after=SETTLED_SECONDS + 1)
    assert verdict(story, "INV-003").holds is not False


# -- INV-008 --------------------------------------------------------------------------------------------------------


def scaled_story(story, extra: dict[str, str]) -> None:
    story.owned("podcliquescalinggroups", "s-0-g", None, minAvailable=1)
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    story.gang("s-0-g-0", {"s-0-g-1-w": (1, ["w1"])})
    story.pod("a1", **A)
    story.pod("w1", **SCALED, extra=extra)


def test_a_scaled_pod_that_is_bound_after_its_base_gang_is_right(story):
    scaled_story(story, BASED)
    story.pod("a1", **A, node="n1")
    story.pod("w1", **SCALED, extra=BASED, node="n1")
    assert verdict(story, "INV-008").holds is True


def test_a_scaled_pod_that_is_bound_before_is_wrong(story):
    scaled_story(story, BASED)
    story.pod("w1", **SCALED, extra=BASED, node="n1")
    story.pod("a1", **A, node="n1")
    result = verdict(story, "INV-008")
    assert result.holds is False
    assert "scaled pod w1 was bound while in its base gang s-0 s-0-a has 0 of 1 bound" in result.reason


def test_a_scaled_pod_without_the_label_is_known_by_its_index(story):
    scaled_story(story, GROUP_LABELS)
    story.pod("w1", **SCALED, extra=GROUP_LABELS, node="n1")
    assert verdict(story, "INV-008").holds is False


def test_a_base_gang_of_another_name_is_known_by_its_pods(story):
    story.owned("podcliquescalinggroups", "s-0-g", None, minAvailable=1)
    story.gang("s-0-1795511111", {"s-0-a": (1, ["a1"])})
    story.gang("s-0-1795511111-g-1", {"s-0-g-1-w": (1, ["w1"])})
    base = {labels.SET_INDEX: "0", labels.PART_OF: "s"}
    story.pod("a1", gang="s-0-1795511111", clique="s-0-a", extra=base)
    story.pod("w1", gang="s-0-1795511111-g-1", clique="s-0-g-1-w", extra=GROUP_LABELS)
    story.pod("a1", gang="s-0-1795511111", clique="s-0-a", extra=base, node="n1")
    story.pod("w1", gang="s-0-1795511111-g-1", clique="s-0-g-1-w", extra=GROUP_LABELS, node="n1")
    assert verdict(story, "INV-008").holds is True


def test_a_base_gang_that_has_lost_a_pod_blocks_no_scaled_pod(story):
    scaled_story(story, BASED)
    story.pod("a1", **A, node="n1")
    story.delete("pods", "a1")
    story.pod("w1", **SCALED, extra=BASED, node="n1", after=30)
    assert verdict(story, "INV-008").holds is True


def test_a_recreated_base_gang_starts_over(story):
    scaled_story(story, BASED)
    story.pod("a1", **A, node="n1")
    story.delete("pods", "a1")
    story.delete("podgangs", "s-0")
    story.gang("s-0", {"s-0-a": (1, ["a2"])})
    story.pod("w1", **SCALED, extra=BASED, node="n1")
    assert verdict(story, "INV-008").holds is False


def test_a_set_with_a_map_has_no_base_gang(story):
    """The gangs of such a set have anchors instead, and other rules (COH-265)."""
    extra = {**GROUP_LABELS, "app.kubernetes.io/part-of": "s"}
    story.owned("podgangmaps", "s-0", None)
    scaled_story(story, extra)
    story.pod("w1", **SCALED, extra=extra, node="n1")
    assert verdict(story, "INV-008").holds is None


def test_without_a_bound_scaled_pod_nothing_is_known(story):
    scaled_story(story, BASED)
    story.pod("a1", **A, node="n1")
    assert verdict(story, "INV-008").holds is None


# -- INV-010 --------------------------------------------------------------------------------------------------------


def test_a_node_that_is_just_full_is_right(story):
    story.node("n1", gpus="1", cpu="2", pods="10")
    story.pod("a1", **A, asks=ONE)
    story.pod("a1", **A, asks=ONE, node="n1")
    assert verdict(story, "INV-010").holds is True


def test_a_second_pod_on_a_node_for_one_is_wrong(story):
    story.node("n1", gpus="1")
    for name in ("a1", "a2"):
        story.pod(name, **A, asks=ONE)
        story.pod(name, **A, asks=ONE, node="n1")
    result = verdict(story, "INV-010")
    assert result.holds is False
    assert "pod a2 was bound to n1, whose pods then asked for 2 nvidia.com/gpu of 1" in result.reason


def test_a_device_that_a_node_lacks_is_wrong_but_memory_that_it_does_not_report_is_not(story):
    story.node("n1", cpu="8")
    story.pod("a1", **A, asks={"memory": "1Gi"})
    story.pod("a1", **A, asks={"memory": "1Gi"}, node="n1")
    assert verdict(story, "INV-010").holds is True
    story.pod("a2", **A, asks=ONE)
    story.pod("a2", **A, asks=ONE, node="n1")
    assert verdict(story, "INV-010").holds is False


def test_devices_of_a_claim_are_no_requests_unless_the_node_reports_the_resource(story):
    story.node("devices", cpu="8")
    story.node("extended", gpus="1")
    for name, node in (("a1", "devices"), ("a2", "extended"), ("a3", "extended")):
        assert name == "a1" or verdict(story, "INV-010").holds is True
        story.pod(name, **A, asks=ONE)
        story.pod(name, **A, asks=ONE, node=node, served_by_devices="nvidia.com/gpu")
    assert verdict(story, "INV-010").holds is False


def test_a_terminating_pod_occupies_its_node_until_it_is_deleted(story):
    story.node("n1", gpus="1")
    story.pod("a1", **A, asks=ONE)
    story.pod("a1", **A, asks=ONE, node="n1")
    story.pod("a1", **A, asks=ONE, node="n1", terminating=True)
    story.delete("pods", "a1")
    story.pod("a2", **A, asks=ONE)
    story.pod("a2", **A, asks=ONE, node="n1")
    assert verdict(story, "INV-010").holds is True
    story.pod("a2", **A, asks=ONE, node="n1", terminating=True)
    story.pod("a3", **A, asks=ONE)
    story.pod("a3", **A, asks=ONE, node="n1")
    assert verdict(story, "INV-010").holds is False


def test_a_node_that_has_just_shrunk_is_not_a_violation(story):
    story.node("n1", gpus="2")
    story.pod("a1", **A, asks={"nvidia.com/gpu": "2"})
    story.node("n1", gpus="1")
    story.pod("a1", **A, asks={"nvidia.com/gpu": "2"}, node="n1")
    assert verdict(story, "INV-010").holds is True


def test_unbound_pods_are_counted_and_not_judged(story):
    story.node("n1", gpus="1")
    story.pod("daemon", node="n1", asks=ONE)
    assert verdict(story, "INV-010").holds is None
    story.pod("a1", **A, asks=ONE)
    story.pod("a1", **A, asks=ONE, node="n1")
    assert verdict(story, "INV-010").holds is False
