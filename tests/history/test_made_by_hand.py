"""Gangs and pods that the suite makes in the place of an operator: nobody is judged by how they came to be, and only
what becomes of them shows that anybody is at work."""

from __future__ import annotations

from conformance import invariants
from conformance.grove import labels
from conformance.suite.wait_budget import alive

TAG = {labels.BY_HAND: "gs-s01"}
A = {"gang": "a", "clique": "a-w", "extra": TAG}


def test_no_rule_judges_what_was_made_by_hand(story):
    story.pod("w0", **A)
    story.pod("w1", **A, node="n1", after=30.0)
    found = invariants.judge(story.history)
    assert len(found) == len(invariants.rules())
    assert all(verdict.holds is None for verdict in found), [str(verdict) for verdict in found]


def test_an_operators_own_pods_are_judged_beside_them(story):
    story.pod("w0", **A)
    story.pod("mine", gang="s-0", clique="s-0-w")
    [found] = invariants.judge(story.history, only=["INV-001"])
    assert found.holds is False


def test_a_binding_is_a_sign_of_life_and_a_pod_made_with_its_node_is_none(story):
    story.pod("w0", **A)
    assert not alive(story.history.view())
    metadata = {"labels": TAG, "annotations": {labels.BOUND: "before"}}
    story.tell("pods", "old", {"metadata": metadata, "spec": {"nodeName": "n1"}})
    assert not alive(story.history.view())
    story.pod("w0", **A, node="n1")
    assert alive(story.history.view())
