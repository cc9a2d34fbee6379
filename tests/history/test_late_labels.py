"""Tests that an operator cannot hide its actions from the rules by labels that it sets late or removes for a while."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.history.record import Record
from tests.history.story import Story

IN_GANG = {"gang": "s-0", "clique": "s-0-w"}
GROUPS = {"s-0-w": (1, ["w0"])}


def verdict(story: Story, id: str, **options: object) -> bool | None:
    [result] = invariants.judge(story.history, rule_ids=[id], **options)  # type: ignore[arg-type]
    return result.holds


def labeled_late(story: Story) -> Record:
    """Record a pod that is created and bound without its labels, before its gang is complete; return the record of its
    creation."""
    story.gang("s-0", {"s-0-w": (1, [])}, initialized=False)
    created = story.pod("w0")
    story.pod("w0", node="n1")
    story.gang("s-0", GROUPS)
    story.pod("w0", node="n1", **IN_GANG)
    return created


@pytest.mark.parametrize("id", ["INV-001", "INV-005", "GANG-005"])
def test_a_pod_that_gets_its_labels_late_was_created_without_the_gate(story: Story, id: str) -> None:
    labeled_late(story)
    assert verdict(story, id) is False


def test_a_pod_that_gets_its_labels_late_was_created_before_its_gang(story: Story) -> None:
    story.pod("w0", gated=True)
    story.gang("s-0", GROUPS)
    story.pod("w0", gated=True, **IN_GANG)
    assert verdict(story, "GANG-024") is False


def test_a_bound_pod_that_joins_a_gang_late_held_its_node_for_it(story: Story) -> None:
    story.gang("s-0", {"s-0-w": (2, [])})
    story.pod("w0")
    story.pod("w0", node="n1")
    story.pod("w0", node="n1", **IN_GANG)
    story.pod("w1", after=60, gated=True, **IN_GANG)
    assert verdict(story, "INV-003") is False


def test_a_pod_without_its_labels_for_a_while_is_judged_meanwhile(story: Story) -> None:
    story.gang("s-0", GROUPS, initialized=False)
    story.pod("w0", gated=True, **IN_GANG)
    story.pod("w0", gated=True)
    story.pod("w0", node="n1")
    story.gang("s-0", GROUPS)
    story.pod("w0", node="n1", **IN_GANG)
    assert verdict(story, "INV-005") is False


def test_objects_of_another_operator_may_be_adopted(story: Story) -> None:
    created = labeled_late(story)
    assert verdict(story, "GANG-005", foreign_spans=[(created.seq - 1, created.seq)]) is None


def test_a_pod_without_a_gang_is_not_judged(story: Story) -> None:
    story.pod("alone")
    story.pod("alone", node="n1")
    assert verdict(story, "GANG-005") is None
