"""Tests of INV-007 with histories where it holds, where it is violated, and where it cannot be judged."""

from __future__ import annotations

from typing import Any

from conformance import invariants
from conformance.history.gangs import Gangs
from conformance.invariants.result import RuleResult
from conformance.invariants.status_at_rest import REST_SECONDS, NoStatusWritesAtRest

SET = ("podcliquesets", "s")


def rested(story, *, seconds: float = 0.5, unrest: list[tuple[float, float]] | None = None) -> RuleResult:
    """Return the result of INV-007 `seconds` after the last record."""
    rule, gangs = NoStatusWritesAtRest(unrest or ()), Gangs()
    for record in story.history.records():
        rule.observe(record, gangs)
        gangs.apply(record)
    return rule.result(gangs, story.at + seconds)


def clique(story, status: dict[str, Any], *, generation: int = 1, after: float = 0.5, **metadata: Any) -> None:
    """Record a PodClique whose status has observed its current generation, unless `status` says otherwise."""
    record_status("podcliques", "s-0-a", story, status, generation=generation, after=after, **metadata)


def record_status(
    resource: str, name: str, story, status: dict[str, Any], *, generation: int = 1, after: float = 0.5, **metadata: Any
) -> None:
    status = {"observedGeneration": generation, **status}
    story.record(resource, name, {"metadata": {"generation": generation, **metadata}, "status": status}, after=after)


def breach(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "MinAvailableBreached", "status": status}]}


def test_an_unchanged_status_is_correct(story):
    clique(story, breach("True"))
    clique(story, breach("False"))
    assert rested(story, seconds=REST_SECONDS).holds is True


def test_an_operator_that_takes_over_may_write(story):
    clique(story, {})
    clique(story, {"replicas": 1})
    start = story.at + REST_SECONDS
    clique(story, {"replicas": 2}, after=REST_SECONDS + 3)
    assert rested(story).holds is False
    assert rested(story, unrest=[(start, start + 4)], seconds=REST_SECONDS + 2).holds is True
    clique(story, {"replicas": 3}, after=2 * REST_SECONDS)
    assert rested(story, unrest=[(start, start + 4)]).holds is False


def test_a_status_written_at_rest_is_reported(story):
    clique(story, {})
    clique(story, {"replicas": 1})
    clique(story, {"replicas": 2}, after=REST_SECONDS + 1)
    result = rested(story)
    assert result.holds is False
    assert "podcliques/s-0-a was written 11.0 s after anything had changed" in result.reason


def test_a_status_that_follows_a_change_is_right(story):
    clique(story, {"replicas": 1})
    story.pod("a1", gang="s-0", clique="s-0-a", after=REST_SECONDS + 1)
    clique(story, {"replicas": 2})
    assert rested(story).holds is True


def test_writes_of_users_are_not_violations(story):
    clique(story, {})
    clique(story, {}, generation=2, after=REST_SECONDS + 1)
    clique(story, {}, generation=2, after=REST_SECONDS + 1, annotations={"a": "b"})
    assert rested(story).holds is True


def test_the_heartbeat_of_a_node_is_not_a_change(story):
    def node(moment: str, **options: Any) -> None:
        status = {"allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready", "lastHeartbeatTime": moment}]}
        story.record("nodes", "n", {"spec": options.pop("spec", {}), "status": status}, **options)

    node("1")
    clique(story, {})
    clique(story, {"replicas": 0})
    node("2", after=REST_SECONDS)
    clique(story, {"replicas": 1})
    assert rested(story).holds is False


def test_a_change_of_a_node_is_a_cause(story):
    story.record("nodes", "n", {"spec": {}})
    clique(story, {})
    story.record("nodes", "n", {"spec": {"unschedulable": True}}, after=REST_SECONDS)
    clique(story, {"replicas": 1})
    assert rested(story).holds is True


def test_a_new_node_ends_the_rest(story):
    clique(story, {})
    story.record("nodes", "n", {"spec": {}}, after=REST_SECONDS)
    clique(story, {"replicas": 1})
    assert rested(story).holds is True


def test_a_generation_that_is_observed_late_is_not_at_rest(story):
    for observed in (None, None, 1):
        clique(story, {"observedGeneration": observed}, after=REST_SECONDS + 2)
        clique(story, {"observedGeneration": observed, "replicas": 1}, after=REST_SECONDS + 2)
    assert rested(story).holds is not False
    clique(story, {"replicas": 2}, generation=2, after=REST_SECONDS + 2)
    clique(story, {"observedGeneration": 1}, generation=2, after=REST_SECONDS + 2)
    clique(story, {"observedGeneration": 1, "replicas": 2}, generation=2, after=REST_SECONDS + 2)
    assert rested(story).holds is True


def test_a_write_that_keeps_the_status_is_not_a_status_write(story):
    clique(story, {})
    clique(story, {"replicas": 1})
    clique(story, {"replicas": 1}, after=REST_SECONDS + 1, finalizers=["grove.io/podclique"])
    owners = [{"kind": "PodCliqueSet", "name": "s", "uid": "u"}]
    clique(story, {"replicas": 1}, after=REST_SECONDS + 1, finalizers=["grove.io/podclique"], ownerReferences=owners)
    assert rested(story).holds is True


def test_a_late_reaction_is_not_a_write_at_rest(story):
    """Any change since the last write of a status may be the reason for the next write, however late that is."""
    clique(story, {})
    story.pod("a1", gang="s-0", clique="s-0-a")
    clique(story, {"replicas": 1}, after=REST_SECONDS + 1)
    assert rested(story).holds is True
    clique(story, {"replicas": 2}, after=REST_SECONDS + 1)
    assert rested(story).holds is False


def test_a_status_that_is_written_again_and_again_is_at_rest(story):
    """The first write may be late, and two writes in quick succession may belong to one reconciliation. Later writes
    have no reason."""
    clique(story, {})
    story.pod("a1", gang="s-0", clique="s-0-a")
    clique(story, {"replicas": 0}, after=REST_SECONDS + 1)
    clique(story, {"replicas": 1})
    assert rested(story).holds is True
    for second in range(int(REST_SECONDS)):
        clique(story, {"replicas": second % 2}, after=1)
    result = rested(story)
    assert result.holds is False
    assert "10.5 s after anything had changed" in result.reason


def test_a_status_follows_those_below_it(story):
    record_status(*SET, story, {})
    clique(story, {})
    clique(story, {"replicas": 1})
    record_status(*SET, story, {"replicas": 1}, after=REST_SECONDS + 1)
    assert rested(story).holds is True
    clique(story, {"replicas": 2}, after=REST_SECONDS + 1)
    assert rested(story).holds is False


def test_the_status_of_a_clique_does_not_follow_that_of_its_gang(story):
    story.gang("s-0", {"s-0-a": (1, ["a1"])}, initialized=False)
    record_status(*SET, story, {})
    clique(story, {})
    clique(story, {"replicas": 1})
    story.gang("s-0", {"s-0-a": (1, ["a1"])})
    record_status(*SET, story, {"replicas": 1}, after=REST_SECONDS + 1)
    assert rested(story).holds is True
    clique(story, {"replicas": 2}, after=REST_SECONDS + 1)
    assert rested(story).holds is False


def test_a_status_follows_the_update_of_those_above_it(story):
    clique(story, {"replicas": 1})
    record_status(*SET, story, {"currentGenerationHash": "b"})
    clique(story, {"replicas": 1, "currentPodCliqueSetGenerationHash": "b"}, after=REST_SECONDS + 1)
    assert rested(story).holds is True


def test_a_clique_with_a_breach_or_errors_is_not_at_rest(story):
    for status in (breach("True"), {"lastErrors": [{"code": "ERR"}]}):
        clique(story, status)
        clique(story, {**status, "replicas": 1}, after=REST_SECONDS + 1)
        clique(story, {})
    assert rested(story).holds is None


def test_without_a_status_the_rule_is_unknown(story):
    story.pod("a1")
    assert rested(story, seconds=REST_SECONDS + 1).holds is None
    [result] = invariants.judge(story.history, rule_ids=["INV-007"])
    assert result.holds is None
