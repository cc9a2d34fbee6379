"""Tests that objects of each published shape (COH-005 to COH-022) are read into one model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.grove import gang_maps
from conformance.grove.coherent import shapes
from conformance.grove.coherent.model import shape
from conformance.history.summary import state
from tests.history.story import Story

SELECTOR = {"matchLabels": {"scheduling.grove.io/anchor": "true"}}
HASH = "podCliqueSetGenerationHash"


def make_map(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "s-0"}, "spec": {"podCliqueSetReplicaIndex": 0, "entries": list(entries)}}


MERGED_MAP = make_map(
    {
        "name": "s-0-1000",
        HASH: "h1",
        "podCliques": {"F": 5},
        "pcsgReplicaIndices": {"P": [0], "D": [0]},
        "labels": {"scheduling.grove.io/anchor": "true"},
    },
    {"name": "s-0-1001", HASH: "h1", "pcsgReplicaIndices": {"P": [1]}, "dependsOn": SELECTOR},
    {"name": "s-0-1002", HASH: "h1", "pcsgReplicaIndices": {"P": [2]}, "dependsOn": SELECTOR},
    {"name": "s-0-1003", HASH: "h1", "pcsgReplicaIndices": {"D": [1]}, "dependsOn": SELECTOR},
)
MAP_WITHOUT_LABELS = make_map(
    *({k: v for k, v in entry.items() if k != "labels"} for entry in MERGED_MAP["spec"]["entries"])
)
BRANCH_MAP = make_map(
    {"name": "s-0-h1-0", HASH: "h1", "podCliques": {"F": 5}, "pcsgReplicaIndices": {"P": [0], "D": [0]}},
    {"name": "s-0-h1-1", HASH: "h1", "pcsgReplicaIndices": {"P": [1]}, "dependsOn": ["s-0-h1-0"]},
    {"name": "s-0-h1-2", HASH: "h1", "pcsgReplicaIndices": {"P": [2]}, "dependsOn": ["s-0-h1-0"]},
    {"name": "s-0-h1-D-0", HASH: "h1", "pcsgReplicaIndices": {"D": [1]}, "dependsOn": ["s-0-h1-0"]},
)
EPOCHS_MAP = make_map(
    {
        "epoch": "1000",
        "role": "Anchor",
        "anchorIndex": 0,
        HASH: "h1",
        "podCliques": {"F": 5},
        "pcsgReplicaIndices": {"P": [0], "D": [0]},
    },
    {"epoch": "1001", "role": "Tail", HASH: "h1", "pcsgReplicaIndices": {"P": [1, 2], "D": [1]}, "dependsOn": ["1000"]},
    {"epoch": "1002", "role": "ScaleOut", HASH: "h1", "pcsgReplicaIndices": {}, "dependsOn": [""]},
)
SHAPES = {"merged": MERGED_MAP, "without-labels": MAP_WITHOUT_LABELS, "branch": BRANCH_MAP, "epochs": EPOCHS_MAP}


@pytest.mark.parametrize("name", SHAPES)
def test_maps_of_every_shape_are_read_into_one_model(name: str) -> None:
    entries = shapes.entries(SHAPES[name])
    assert shape(entries) == sorted(["anchor {F5, D[0], P[0]}", "{P[1]}", "{P[2]}", "{D[1]}"])
    assert [entry.dependent for entry in entries if entry.anchor] == [False]
    assert all(entry.dependent for entry in entries if not entry.anchor)
    assert {entry.generation for entry in entries} == {"h1"} == shapes.generations(SHAPES[name])
    assert len({entry.key for entry in entries}) == len(entries)
    assert shapes.replica(SHAPES[name]) == 0


def test_names_of_podcliques_refer_to_their_templates() -> None:
    """The API comments say "standalone PodClique name", which can be the name of the object or of the template."""
    owner = [{"kind": "PodCliqueSet", "name": "s", "uid": "u", "controller": True}]
    gang_map = make_map({"epoch": "1", "role": "Anchor", "podCliques": {"s-0-F": 5}, "pcsgReplicaIndices": {"P": [0]}})
    gang_map["metadata"]["ownerReferences"] = owner
    assert shape(shapes.entries(gang_map)) == ["anchor {F5, P[0]}"]
    assert [entry.cliques for entry in gang_maps.entries(gang_map)] == [{"F": 5}]
    progress = {"updatedStandalonePodCliques": ["s-0-F", "s-1-F"], "updatedPodCliqueScalingGroups": ["P"]}
    pcs = {"metadata": {"name": "s"}, "status": {"updateProgress": progress}}
    assert shapes.scope(pcs) == {("clique", "F"), ("group", "P")}


def test_an_anchor_may_have_scaling_groups_only() -> None:
    """In a set without standalone cliques, the anchor's `podCliques` is empty too, so a non-empty `podCliques` cannot
    be the test for an anchor (COH-228)."""
    map_without_cliques = make_map({"name": "s-0-1", HASH: "h", "pcsgReplicaIndices": {"P": [0]}})
    assert [entry.anchor for entry in shapes.entries(map_without_cliques)] == [True]


def gang(name: str, tags: Mapping[str, str], *groups: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": dict(tags)},
        "spec": {"podgroups": [{"name": group} for group in groups]},
        "status": status,
    }


MEMBERS = {"s-0-P-0-lead": "P/0", "s-0-P-1-lead": "P/1", "s-0-P-1-work": "P/1"}


@pytest.mark.parametrize(
    ("document", "key", "anchor"),
    [
        (gang("s-0-1000", {"scheduling.grove.io/anchor": "true"}, "s-0-F", "s-0-P-0-lead"), "s-0-1000", True),
        (gang("s-0-1001", {}, "s-0-P-1-lead", "s-0-P-1-work"), "s-0-1001", False),
        (gang("x", {"grove.io/epoch": "1000", "grove.io/podgang-role": "Anchor"}, "s-0-P-0-lead"), "1000", True),
        (
            gang("y", {"grove.io/epoch": "1001", "grove.io/podgang-role": "Tail"}, "s-0-P-1-lead", "s-0-P-1-work"),
            "1001/P/1",
            False,
        ),
    ],
)
def test_gangs_are_assigned_to_their_entries(document: dict[str, Any], key: str, anchor: bool) -> None:
    assert shapes.key_of(document, MEMBERS) == key
    assert shapes.is_anchor(document) is anchor


@pytest.mark.parametrize(
    ("status", "is_done"),
    [
        ({}, False),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, False),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True),
        ({"conditions": [{"type": "Available", "status": "True"}]}, True),
        ({"conditions": [{"type": "Ready", "status": "False"}], "lastReady": "2026-01-01T00:00:00Z"}, True),
    ],
)
def test_a_gang_is_done_once_it_has_been_ready(status: dict[str, Any], is_done: bool) -> None:
    assert shapes.gang_was_ready({"status": status}) is is_done


def test_a_gang_is_scheduled_by_its_condition_or_its_time() -> None:
    assert shapes.gang_was_scheduled({"status": {"conditions": [{"type": "Scheduled", "status": "True"}]}})
    assert shapes.gang_was_scheduled({"status": {"lastScheduled": "2026-01-01T00:00:00Z"}})
    assert not shapes.gang_was_scheduled({"status": {}})


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"inFlightPodGangs": ["s-0-1000", "s-0-1001"]}, ["s-0-1000", "s-0-1001"]),
        ({"inFlightEpoch": "1000"}, ["1000"]),
        ({"inFlightEpochs": ["1000"]}, ["1000"]),
        ({}, []),
    ],
)
def test_gangs_in_flight_are_read_from_the_progress(entry: dict[str, Any], names: list[str]) -> None:
    turns = [{"replicaIndex": 1, **entry}, {"replicaIndex": 0, "updateEndedAt": "2026-01-01T00:00:00Z"}]
    assert shapes.in_flight({"status": {"updateProgress": {"currentlyUpdating": turns}}}) == {1: names}


@pytest.mark.parametrize("field", ["errorMessage", "message"])
def test_the_reason_why_an_update_waits_is_read(field: str) -> None:
    turns = [{"replicaIndex": 0, field: "waiting"}]
    assert shapes.stalls({"status": {"updateProgress": {"currentlyUpdating": turns}}}) == {0: "waiting"}


@pytest.mark.parametrize(
    ("cliques", "groups"),
    [
        ("updatedStandalonePodCliques", "updatedPodCliqueScalingGroups"),
        ("inScopeStandalonePodCliques", "inScopePodCliqueScalingGroups"),
    ],
)
def test_the_scope_is_read_from_the_progress(cliques: str, groups: str) -> None:
    pcs = {"status": {"updateProgress": {cliques: ["F"], groups: ["P", "D"]}}}
    assert shapes.scope(pcs) == {("clique", "F"), ("group", "P"), ("group", "D")}


def test_malformed_objects_raise_no_error() -> None:
    for malformed_object in (
        None,
        {},
        {"spec": {"entries": [3, {"podCliques": [], "pcsgReplicaIndices": {"P": "x"}}]}},
    ):
        assert shapes.entries(malformed_object) == ()
        assert shapes.in_flight(malformed_object) == {} == shapes.stalls(malformed_object)


def test_a_timeline_shows_the_entries_of_a_map() -> None:
    story = Story()
    record = story.record("podgangmaps", "s-0", {"spec": MERGED_MAP["spec"]})
    assert state(record) == "anchor {F5, D[0], P[0]}@h1 {P[1]}@h1 {P[2]}@h1 {D[1]}@h1"
    assert state(story.record("podgangmaps", "s-0", {"spec": {"entries": []}})) == "no entries"


@pytest.mark.parametrize(
    ("parts_by_state", "scopes"),
    [
        ([["a", "b"], ["b", "a"]], [("a", "b")]),
        ([[], ["a"]], [("a",)]),
        ([["a"], []], [(), ("a",)]),
        ([["a"], ["a", "b"]], [("a",), ("a", "b")]),
        ([[]], []),
    ],
    ids=["same", "start first", "lost", "changed", "never"],
)
def test_a_start_may_be_written_before_the_scope(
    parts_by_state: list[list[str]], scopes: list[tuple[str, ...]]
) -> None:
    """The scopes are read from the states of a set during an update."""
    progress = ({"updateStartedAt": "t", "updatedStandalonePodCliques": parts} for parts in parts_by_state)
    assert shapes.scopes({"status": {"updateProgress": pcs}} for pcs in progress) == scopes
