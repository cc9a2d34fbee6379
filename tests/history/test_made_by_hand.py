"""Tests of gangs and pods that the suite creates in place of an operator: their creation is not judged, and only their
later changes show that an operator or a scheduler is active. Such objects are known from the suite's own writes, never
from their labels or annotations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.history.origins import ByHand, Origins
from conformance.history.query import History
from conformance.history.record import Record
from conformance.suite.scenes.wait_budget import shows_binding, shows_life
from tests.history.story import Story

TAG = {labels.BY_HAND: "gs-s01"}
A = {"gang": "a", "clique": "a-w"}


def by_hand(story: Story, name: str, *, bound: bool = False) -> None:
    record = story.history.records("pods", name)[0]
    story.history.origins.by_hand[record.uid] = ByHand(TAG, bound)


def two_pods(story: Story) -> Story:
    """Record two pods without a gate, one of which is bound later."""
    story.pod("w0", **A, extra=TAG)
    story.pod("w1", **A, extra=TAG)
    story.pod("w1", **A, extra=TAG, node="n1", after=30.0)
    return story


def test_no_rule_judges_objects_created_by_hand(story):
    for name in ("w0", "w1"):
        by_hand(two_pods(story), name)
    results = invariants.judge(story.history)
    assert len(results) == len(invariants.rules())
    assert all(verdict.holds is None for verdict in results), [str(verdict) for verdict in results]


@pytest.mark.parametrize("id", ["INV-001", "INV-005"])
def test_an_operator_that_labels_its_pods_as_ours_is_judged(story, id):
    story.gang("s-0", {"s-0-w": (1, [])}, initialized=False)
    story.pod("mine", gang="s-0", clique="s-0-w", extra=TAG)
    [result] = invariants.judge(story.history, rule_ids=[id])
    assert result.holds is False


def test_an_operators_own_pods_are_still_judged(story):
    by_hand(two_pods(story), "w0")
    by_hand(story, "w1")
    story.pod("mine", gang="s-0", clique="s-0-w")
    [result] = invariants.judge(story.history, rule_ids=["INV-001"])
    assert result.holds is False


def test_a_later_object_of_the_same_name_is_judged(story):
    by_hand(two_pods(story), "w0")
    by_hand(story, "w1")
    story.delete("pods", "w0")
    story.pod("w0", **A, extra=TAG)
    [result] = invariants.judge(story.history, rule_ids=["INV-001"])
    assert result.holds is False


def test_saved_and_frozen_histories_keep_the_objects_created_by_hand(story: Story, tmp_path: Path) -> None:
    by_hand(two_pods(story), "w0")
    by_hand(story, "w1", bound=True)
    story.history.save(tmp_path / "history.jsonl")
    for copy in (History.load(tmp_path / "history.jsonl"), story.history.frozen()):
        assert copy.origins == story.history.origins
        assert all(verdict.holds is None for verdict in invariants.judge(copy))


def test_a_binding_is_a_sign_of_life_but_a_pod_created_with_its_node_is_not(story):
    story.pod("w0", **A)
    by_hand(story, "w0")
    story.pod("old", **A, node="n1")
    by_hand(story, "old", bound=True)
    assert not has_sign(story, shows_life) and not has_sign(story, shows_binding)
    story.pod("w0", **A, node="n1")
    assert has_sign(story, shows_life) and has_sign(story, shows_binding)


def test_a_label_hides_no_sign_of_life(story):
    """An annotation does not hide a sign of life either."""
    metadata = {"labels": {labels.GANG: "a", **TAG}, "annotations": {"conformance.grove.io/bound": "before"}}
    story.record("podcliques", "s-0-w", {"metadata": metadata})
    assert has_sign(story, shows_life)
    story.record("pods", "w0", {"metadata": metadata, "spec": {"nodeName": "n1"}})
    assert has_sign(story, shows_binding)


def test_a_finalizer_of_the_api_server_is_not_a_sign_of_life(story):
    story.record("podcliquesets", "s", {"metadata": {"finalizers": ["foregroundDeletion"]}})
    assert not has_sign(story, shows_life)
    story.record("podcliquesets", "s", {"metadata": {"finalizers": ["foregroundDeletion", "grove.io/podcliqueset"]}})
    assert has_sign(story, shows_life)


def has_sign(story: Story, sign: Callable[[Record, Origins], bool]) -> bool:
    """Return whether the story has this sign of life."""
    return any(sign(record, story.history.origins) for record in story.history.records())
