"""Tests of the rules about statuses (COHR-018, CORE-018, CORE-019, UPD-008) and about the nodes of pods (SCHED-042).
Each rule is tested with histories where it holds, where it is violated, and where it cannot be judged."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.invariants.creations import STALE
from conformance.invariants.result import RuleResult


def verdict(story, id: str) -> RuleResult:
    [result] = invariants.judge(story.history, rule_ids=[id])
    return result


def record_clique(story, *conditions: tuple[str, str, str], after: float = 0.5, **status: int) -> None:
    condition_list = [
        {"type": condition_type, "status": is_true, "lastTransitionTime": time}
        for condition_type, is_true, time in conditions
    ]
    story.record(
        "podcliques",
        "s-0-a",
        {"status": {**status, **({"conditions": condition_list} if condition_list else {})}},
        after=after,
    )


@pytest.mark.parametrize(
    ("status", "holds"),
    [
        ({}, None),
        ({"replicas": 2, "readyReplicas": 1, "scheduleGatedReplicas": 1}, True),
        ({"replicas": 0}, True),
        ({"replicas": 2, "readyReplicas": 2, "scheduleGatedReplicas": 1}, False),
        ({"replicas": 1, "readyReplicas": 2}, False),
    ],
)
def test_ready_and_gated_pods_are_at_most_all_pods(story, status, holds):
    record_clique(story, **status)
    record_clique(story, **status)
    assert verdict(story, "CORE-018").holds is holds


def test_a_transition_time_that_changes_without_its_status_is_wrong(story):
    record_clique(story, ("B", "True", "1"))
    assert verdict(story, "CORE-019").holds is None
    record_clique(story, ("B", "False", "1"))  # within the same second
    record_clique(story, ("B", "False", "1"), ("P", "True", "1"))
    record_clique(story, ("B", "True", "2"), ("P", "True", "1"))
    record_clique(story, ("B", "True", "3"), ("P", "True", "1"))  # the operator may not have seen its own write yet
    assert verdict(story, "CORE-019").holds is True
    record_clique(story, ("B", "True", "3"), ("P", "True", "1"), after=STALE)
    record_clique(story, ("B", "True", "9"), ("P", "True", "1"))
    assert "B=True of podcliques/s-0-a: 3 → 9" in verdict(story, "CORE-019").reason


def test_a_condition_that_comes_back_has_a_new_time(story):
    record_clique(story, ("B", "True", "1"))
    record_clique(story)
    record_clique(story, ("B", "True", "2"))
    assert verdict(story, "CORE-019").holds is not False


@pytest.mark.parametrize("resource", ["podcliquesets", "podcliquescalinggroups"])
def test_a_counter_above_its_total_is_wrong(story, resource):
    story.record(resource, "s", {"status": {"updateProgress": {"updatedPodCliquesCount": 2}}})
    assert verdict(story, "UPD-008").holds is None
    progress = {"updateStartedAt": "2026-01-01T00:00:00Z", "totalPodCliquesCount": 2, "updatedPodCliquesCount": 2}
    story.record(resource, "s", {"status": {"updateProgress": progress}})
    assert verdict(story, "UPD-008").holds is True
    story.record(resource, "s", {"status": {"updateProgress": {**progress, "updatedPodCliquesCount": 3}}})
    assert "updatedPodCliquesCount is 3 and totalPodCliquesCount is 2" in verdict(story, "UPD-008").reason


@pytest.mark.parametrize("scaled", ["podcliquesets", "podcliquescalinggroups"])
@pytest.mark.parametrize(("replicas", "holds"), [(1, True), (2, False)])
def test_a_counter_may_be_above_its_total_after_a_scale_in(story, scaled, replicas, holds):
    """PodCliques that are being deleted may be of the new generation, but are no longer expected."""
    names = {"podcliquesets": "s", "podcliquescalinggroups": "s-0-g"}
    counts = {"updateStartedAt": "2026-01-01T00:00:00Z", "totalPodCliquesCount": 2}

    def write(replicas: int, updated: int) -> None:
        for resource, name in names.items():
            spec = {"replicas": replicas if resource == scaled else 1}
            status = {"updateProgress": {**counts, "updatedPodCliquesCount": updated}}
            metadata = {"labels": {labels.PART_OF: "s"}}
            story.record(resource, name, {"metadata": metadata, "spec": spec, "status": status})

    for now, updated in ((2, 2), (replicas, 2), (replicas, 4)):
        write(now, updated)
    assert verdict(story, "UPD-008").holds is holds


def record_gang(story, name: str, *true_types: str) -> None:
    metadata = {"labels": {labels.GENERATION_HASH: "h"}}
    status = {"conditions": [{"type": condition_type, "status": "True"} for condition_type in true_types]}
    story.record("podgangs", name, {"metadata": metadata, "status": status})


@pytest.mark.parametrize("strategy", ["Coherent", "RollingRecreate"])
def test_a_gang_that_is_ready_before_it_was_scheduled_is_wrong_in_coherent_sets(story, strategy):
    story.record("podcliquesets", "s", {"spec": {"updateStrategy": {"type": strategy}, "template": {"cliques": []}}})
    record_gang(story, "s-0-1", "Scheduled")
    assert verdict(story, "COHR-018").holds is None
    record_gang(story, "s-0-1", "Ready")
    record_gang(story, "s-0-2", "Ready", "Scheduled")
    is_judged = strategy == "Coherent"
    assert verdict(story, "COHR-018").holds is (True if is_judged else None)
    record_gang(story, "s-0-3", "Ready")
    result = verdict(story, "COHR-018")
    assert (result.holds is False, "gang s-0-3 was reported as Ready" in result.reason) == (is_judged, is_judged)


# -- SCHED-042 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "holds"), [(STALE - 1, True), (STALE + 1, False)])
def test_a_pod_that_is_bound_to_a_cordoned_node_is_wrong_soon(story, after, holds):
    story.node("n1", gpus="8")
    story.pod("a1")
    assert verdict(story, "SCHED-042").holds is None
    story.node("n1", gpus="8", cordoned=True)
    story.pod("a1", node="n1", after=after)
    assert verdict(story, "SCHED-042").holds is holds


def test_a_node_that_is_uncordoned_again_takes_pods(story):
    story.node("n1", gpus="8", cordoned=True)
    story.node("n1", gpus="8")
    story.pod("a1", after=STALE + 1)
    story.pod("a1", node="n1")
    story.node("n1", gpus="8", cordoned=True)
    story.pod("a1", node="n1", ready=True, after=STALE + 1)
    assert verdict(story, "SCHED-042").holds is True


def test_a_pod_that_tolerates_it_may_be_bound_to_a_cordoned_node(story):
    story.node("n1", gpus="8", cordoned=True)
    spec = {"tolerations": [{"operator": "Exists"}]}
    story.record("pods", "a1", {"spec": spec})
    story.record("pods", "a1", {"spec": {**spec, "nodeName": "n1"}}, after=STALE + 1)
    assert verdict(story, "SCHED-042").holds is True
