"""Tests of successive objects with the same name."""

from __future__ import annotations

from conformance.testing import incarnations

CLIQUES = "podcliques"
TERMINATING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


def with_condition(status: str) -> dict[str, object]:
    return {"status": {"conditions": [{"type": "Sound", "status": status}]}}


def test_a_recreated_object_has_two_incarnations(story):
    story.record(CLIQUES, "a", {})
    story.record(CLIQUES, "b", {})
    before = incarnations.uids(story.history.view(), CLIQUES)
    assert str(incarnations.are_recreated(CLIQUES, ["a"], before)(story.history.view())) == "not created again: a"
    end = story.record(CLIQUES, "a", TERMINATING)
    assert incarnations.uids(story.history.view(), CLIQUES) == {"b": before["b"]}
    assert not incarnations.are_recreated(CLIQUES, ["a"], before)(story.history.view())
    story.delete(CLIQUES, "a")
    story.record(CLIQUES, "a", {})
    assert incarnations.are_recreated(CLIQUES, ["a"], before)(story.history.view()) is True
    assert incarnations.counts(story.history, CLIQUES) == {"a": 2, "b": 1}
    assert incarnations.deletions(story.history, CLIQUES) == {"a": end}


def test_a_condition_counts_from_its_last_transition(story):
    story.record(CLIQUES, "a", with_condition("False"))
    story.record(CLIQUES, "a", with_condition("True"))
    story.record(CLIQUES, "a", with_condition("False"))
    assert incarnations.condition_start(story.history, CLIQUES, "a", "Sound", "True") is None
    start = story.record(CLIQUES, "a", with_condition("True"))
    story.record(CLIQUES, "a", with_condition("True"))
    assert incarnations.condition_start(story.history, CLIQUES, "a", "Sound", "True") == start
    story.delete(CLIQUES, "a")
    assert incarnations.condition_start(story.history, CLIQUES, "a", "Sound", "True") is None
