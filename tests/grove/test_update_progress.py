"""Tests that an update's progress is read from any status that an implementation may write."""

from __future__ import annotations

import pytest

from conformance.grove import updates

RUNNING = {"updateStartedAt": "t", "currentlyUpdating": [{"replicaIndex": 1}]}
ENDED = {"updateStartedAt": "t", "updateEndedAt": "u", "updatedPodCliquesCount": 2}


def with_progress(progress, field="updateProgress"):
    return {"status": {field: progress}}


@pytest.mark.parametrize(
    ("document", "running", "ended", "turns"),
    [
        (None, False, False, []),
        ({"status": {"updateProgress": "?"}}, False, False, []),
        (with_progress({}), False, False, []),
        (with_progress(RUNNING), True, False, [1]),
        (with_progress(RUNNING, "rollingUpdateProgress"), True, False, [1]),
        (with_progress(ENDED), False, True, []),
        (with_progress({"updateEndedAt": "u"}), False, False, []),
        (with_progress({**RUNNING, "currentlyUpdating": [{"replicaIndex": 0, "updateEndedAt": "u"}]}), True, False, []),
        (with_progress({**RUNNING, "currentlyUpdating": [{}, "?"]}), True, False, [None]),
        (with_progress({**RUNNING, "currentlyUpdating": {"replicaIndex": 1}}), True, False, [1]),
    ],
)
def test_progress_is_read_whatever_it_is(document, running, ended, turns):
    assert (updates.is_running(document), updates.has_ended(document), updates.updating_replicas(document)) == (
        running,
        ended,
        turns,
    )


def test_omitted_counters_are_zero():
    assert updates.counts(with_progress(ENDED))["updatedPodCliquesCount"] == 2
    assert updates.counts(with_progress(ENDED))["totalPodCliquesCount"] == 0


def test_hashes_are_compared_by_the_field_that_reports_the_reached_hash():
    clique = with_progress({"podTemplateHash": "h", "podCliqueSetGenerationHash": "g"})
    assert updates.target_hashes(clique) == {"currentPodTemplateHash": "h", "currentPodCliqueSetGenerationHash": "g"}
    assert updates.reached_hashes({"status": {"currentPodTemplateHash": "h"}}) == {"currentPodTemplateHash": "h"}


@pytest.mark.parametrize(
    ("progress", "named"),
    [
        ({}, set()),
        ({"readyPodsSelectedToUpdate": {"current": "a", "completed": ["b"]}}, {"a", "b"}),
        ({"readyReplicaIndicesSelectedToUpdate": {"current": 1, "completed": [0]}}, {0, 1}),
        ({"readyPodsSelectedToUpdate": {"current": "a"}}, {"a"}),
        ({"readyPodsSelectedToUpdate": {"current": "a", "completed": "?"}}, {"a"}),
        ({"readyPodsSelectedToUpdate": "?"}, set()),
    ],
)
def test_selected_replicas_count_as_named(progress, named):
    assert updates.listed_selections(with_progress(progress)) == named


@pytest.mark.parametrize("index", [0, 2])
def test_a_selected_replica_may_be_the_first(index):
    assert updates.selected_replica(with_progress({"readyReplicaIndicesSelectedToUpdate": {"current": index}})) == index
