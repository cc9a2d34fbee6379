"""Tests that the rules about gates exempt the pods of sets with the strategy Coherent, and no other pods."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.grove import labels
from tests.history.story import Story

RULES = ["GANG-005", "INV-001", "INV-005"]


def verdict(story: Story, id: str) -> bool | None:
    [result] = invariants.judge(story.history, rule_ids=[id])
    return result.holds


def pod_without_gate(story: Story, set_name: str) -> None:
    """Record a pod without the gate, and then its gang."""
    story.pod(f"{set_name}-a", gang=f"{set_name}-0", clique=f"{set_name}-0-a", extra={labels.PART_OF: set_name})
    story.gang(f"{set_name}-0", {f"{set_name}-0-a": (1, [f"{set_name}-a"])})


def strategy(story: Story, set_name: str, strategy_type: str) -> None:
    story.record("podcliquesets", set_name, {"spec": {"updateStrategy": {"type": strategy_type}}})


@pytest.mark.parametrize("id", RULES)
def test_pods_of_coherent_sets_need_no_gate(story: Story, id: str) -> None:
    strategy(story, "s", "Coherent")
    pod_without_gate(story, "s")
    assert verdict(story, id) is None


@pytest.mark.parametrize("id", RULES)
@pytest.mark.parametrize("kind", ["RollingRecreate", "OnDelete", ""])
def test_pods_of_other_sets_still_need_the_gate(story: Story, id: str, kind: str) -> None:
    strategy(story, "s", "Coherent")
    strategy(story, "r", kind)
    pod_without_gate(story, "r")
    assert verdict(story, id) is False


@pytest.mark.parametrize("id", RULES)
@pytest.mark.parametrize(("first", "then", "holds"), [("Coherent", "OnDelete", None), ("OnDelete", "Coherent", False)])
def test_pods_created_before_a_switch_are_judged_by_the_earlier_strategy(
    story: Story, id: str, first: str, then: str, holds: bool | None
) -> None:
    strategy(story, "s", first)
    pod_without_gate(story, "s")
    strategy(story, "s", then)
    assert verdict(story, id) is holds
    strategy(story, "t", "Coherent")
    pod_without_gate(story, "t")
    assert verdict(story, id) is holds


@pytest.mark.parametrize(("kind", "holds"), [("Coherent", None), ("RollingRecreate", False)])
def test_scaled_pods_of_coherent_sets_need_no_gate(story: Story, kind: str, holds: bool | None) -> None:
    strategy(story, "s", kind)
    story.gang("s-0", {"s-0-a": (1, [])})
    extra = {labels.PART_OF: "s", labels.BASE_GANG: "s-0"}
    story.pod("w1", gang="s-0-g-0", clique="s-0-g-1-w", extra=extra)
    story.gang("s-0-g-0", {"s-0-g-1-w": (1, ["w1"])})
    assert verdict(story, "INV-002") is holds
