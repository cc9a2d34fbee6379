"""Tests that the adapter reads objects of each published shape (COH-005 to COH-022) into one model."""

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


def of(*listed: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "s-0"}, "spec": {"podCliqueSetReplicaIndex": 0, "entries": list(listed)}}


MERGED = of(
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
WITHOUT_LABELS = of(*({k: v for k, v in entry.items() if k != "labels"} for entry in MERGED["spec"]["entries"]))
BRANCH = of(
    {"name": "s-0-h1-0", HASH: "h1", "podCliques": {"F": 5}, "pcsgReplicaIndices": {"P": [0], "D": [0]}},
    {"name": "s-0-h1-1", HASH: "h1", "pcsgReplicaIndices": {"P": [1]}, "dependsOn": ["s-0-h1-0"]},
    {"name": "s-0-h1-2", HASH: "h1", "pcsgReplicaIndices": {"P": [2]}, "dependsOn": ["s-0-h1-0"]},
    {"name": "s-0-h1-D-0", HASH: "h1", "pcsgReplicaIndices": {"D": [1]}, "dependsOn": ["s-0-h1-0"]},
)
EPOCHS = of(
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
SHAPES = {"merged": MERGED, "without-labels": WITHOUT_LABELS, "branch": BRANCH, "epochs": EPOCHS}


@pytest.mark.parametrize("name", SHAPES)
def test_maps(name: str) -> None:
    entries = shapes.entries(SHAPES[name])
    assert shape(entries) == sorted(["anchor {F5, D[0], P[0]}", "{P[1]}", "{P[2]}", "{D[1]}"])
    assert [entry.dependent for entry in entries if entry.anchor] == [False]
    assert all(entry.dependent for entry in entries if not entry.anchor)
    assert {entry.generation for entry in entries} == {"h1"} == shapes.generations(SHAPES[name])
    assert len({entry.key for entry in entries}) == len(entries)
    assert shapes.replica(SHAPES[name]) == 0


def test_names_of_pod_cliques_stand_for_their_cliques() -> None:
    """The API comments say "standalone PodClique name", which can be the name of the object or of the template."""
    owner = [{"kind": "PodCliqueSet", "name": "s", "uid": "u", "controller": True}]
    gang_map = of({"epoch": "1", "role": "Anchor", "podCliques": {"s-0-F": 5}, "pcsgReplicaIndices": {"P": [0]}})
    gang_map["metadata"]["ownerReferences"] = owner
    assert shape(shapes.entries(gang_map)) == ["anchor {F5, P[0]}"]
    assert [entry.cliques for entry in gang_maps.entries(gang_map)] == [{"F": 5}]
    progress = {"updatedStandalonePodCliques": ["s-0-F", "s-1-F"], "updatedPodCliqueScalingGroups": ["P"]}
    pcs = {"metadata": {"name": "s"}, "status": {"updateProgress": progress}}
    assert shapes.scope(pcs) == {("clique", "F"), ("group", "P")}


def test_entries_that_hold_nothing_are_told_apart() -> None:
    assert shapes.empty_entries(EPOCHS) == ["1002"]
    assert shapes.empty_entries(MERGED) == []


def test_an_anchor_of_scaling_groups_only() -> None:
    """Without standalone cliques, non-empty podCliques cannot mark the anchor (COH-228)."""
    only = of({"name": "s-0-1", HASH: "h", "pcsgReplicaIndices": {"P": [0]}})
    assert [entry.anchor for entry in shapes.entries(only)] == [True]


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
def test_gangs_and_their_entries(document: dict[str, Any], key: str, anchor: bool) -> None:
    assert shapes.key_of(document, MEMBERS) == key
    assert shapes.is_anchor(document) is anchor


@pytest.mark.parametrize(
    ("status", "done"),
    [
        ({}, False),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, False),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True),
        ({"conditions": [{"type": "Available", "status": "True"}]}, True),
        ({"conditions": [{"type": "Ready", "status": "False"}], "lastReady": "2026-01-01T00:00:00Z"}, True),
    ],
)
def test_when_a_gang_is_done(status: dict[str, Any], done: bool) -> None:
    assert shapes.gang_done({"status": status}) is done


def test_when_a_gang_is_scheduled() -> None:
    assert shapes.gang_scheduled({"status": {"conditions": [{"type": "Scheduled", "status": "True"}]}})
    assert shapes.gang_scheduled({"status": {"lastScheduled": "2026-01-01T00:00:00Z"}})
    assert not shapes.gang_scheduled({"status": {}})


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"inFlightPodGangs": ["s-0-1000", "s-0-1001"]}, ["s-0-1000", "s-0-1001"]),
        ({"inFlightEpoch": "1000"}, ["1000"]),
        ({"inFlightEpochs": ["1000"]}, ["1000"]),
        ({}, []),
    ],
)
def test_what_is_in_flight(entry: dict[str, Any], names: list[str]) -> None:
    turns = [{"replicaIndex": 1, **entry}, {"replicaIndex": 0, "updateEndedAt": "2026-01-01T00:00:00Z"}]
    assert shapes.in_flight({"status": {"updateProgress": {"currentlyUpdating": turns}}}) == {1: names}


@pytest.mark.parametrize("field", ["errorMessage", "message"])
def test_why_an_update_waits(field: str) -> None:
    turns = [{"replicaIndex": 0, field: "waiting"}]
    assert shapes.stalls({"status": {"updateProgress": {"currentlyUpdating": turns}}}) == {0: "waiting"}


@pytest.mark.parametrize(
    ("cliques", "groups"),
    [
        ("updatedStandalonePodCliques", "updatedPodCliqueScalingGroups"),
        ("inScopeStandalonePodCliques", "inScopePodCliqueScalingGroups"),
    ],
)
def test_the_scope(cliques: str, groups: str) -> None:
    pcs = {"status": {"updateProgress": {cliques: ["F"], groups: ["P", "D"]}}}
    assert shapes.scope(pcs) == {("clique", "F"), ("group", "P"), ("group", "D")}


def test_mappings_as_maps() -> None:
    assert shapes.clique_mapping({"status": {"podGangMapping": {"s-0-1": 2, "s-0-2": 1}}}) == {"s-0-1": 2, "s-0-2": 1}
    group = {"status": {"podGangMapping": {"s-0-1": [0], "s-0-2": [1]}}}
    assert shapes.group_mapping(group, "P") == {"s-0-1": (0,), "s-0-2": (1,)}
    assert shapes.has_mapping(group) and not shapes.has_mapping({})


def test_mappings_as_lists() -> None:
    listed = [{"podGangName": "s-0-1", "epoch": "1", "podCount": 2}]
    assert shapes.clique_mapping({"status": {"podGangMapping": listed}}) == {"s-0-1": 2}
    groups = [
        {"epoch": "1", "role": "Anchor", "anchorIndex": 0, "replicaIndices": [0, 1]},
        {"epoch": "2", "role": "Tail", "replicaIndices": [2, 3]},
    ]
    mapping = shapes.group_mapping({"status": {"podGangMapping": groups}}, "P")
    assert mapping == {"1": (0, 1), "2/P/2": (2,), "2/P/3": (3,)}


def test_broken_objects_raise_nothing() -> None:
    for broken in (None, {}, {"spec": {"entries": [3, {"podCliques": [], "pcsgReplicaIndices": {"P": "x"}}]}}):
        assert shapes.entries(broken) == ()
        assert shapes.in_flight(broken) == {} == shapes.stalls(broken)


def test_a_timeline_shows_what_a_map_holds() -> None:
    story = Story()
    record = story.record("podgangmaps", "s-0", {"spec": MERGED["spec"]})
    assert state(record) == "anchor {F5, D[0], P[0]}@h1 {P[1]}@h1 {P[2]}@h1 {D[1]}@h1"
    assert state(story.record("podgangmaps", "s-0", {"spec": {"entries": []}})) == "no entries"


@pytest.mark.parametrize(
    ("listed", "scopes"),
    [
        ([["a", "b"], ["b", "a"]], [("a", "b")]),
        ([[], ["a"]], [("a",)]),
        ([["a"], []], [(), ("a",)]),
        ([["a"], ["a", "b"]], [("a",), ("a", "b")]),
        ([[]], []),
    ],
    ids=["same", "start first", "lost", "changed", "never"],
)
def test_a_start_may_be_written_before_the_scope(listed: list[list[str]], scopes: list[tuple[str, ...]]) -> None:
    """The scopes are read from the states of a set while an update runs."""
    progress = ({"updateStartedAt": "t", "updatedStandalonePodCliques": parts} for parts in listed)
    assert shapes.scopes({"status": {"updateProgress": pcs}} for pcs in progress) == scopes
