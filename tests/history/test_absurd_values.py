"""Tests that every rule has a result whatever an implementation writes into its objects, because a crash would leave
the run without a verdict."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from conformance import invariants
from conformance.grove import labels
from conformance.history import summary
from conformance.invariants import placements
from tests.history.story import Story

ABSURD: tuple[object, ...] = (None, "", 0, -1, 1 << 62, 1e300, True, [], {}, [None], [[[]]], {"a": {"b": None}})
ABSURD += (
    "1e999",
    "9999-12-31T23:59:59Z",
    "0000-00-00T00:00:00Z",
    "not a date",
    "\x1b[31m\x00<script>",
    "١",
    "²",
    "9" * 5000,
)
TIME = "2026-01-01T00:00:00Z"
CONDITION = {"type": "Ready", "status": "True", "reason": "x", "lastTransitionTime": TIME}
OWNER = {"kind": "PodClique", "name": "s-0-w", "uid": "uid-3", "controller": True}
LABELS = {labels.GANG: "s-0", labels.CLIQUE: "s-0-w", labels.PART_OF: "s", labels.SET_INDEX: "0", labels.POD_INDEX: "0"}
CLIQUE = {"name": "w", "spec": {"replicas": 1, "minAvailable": 1, "startsAfter": ["v"], "podSpec": {"containers": []}}}
TEMPLATE = {
    "terminationDelay": "1h",
    "cliqueStartupType": "CliqueStartupTypeExplicit",
    "cliques": [CLIQUE, {**CLIQUE, "name": "v"}],
    "podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["w"], "replicas": 1, "minAvailable": 1}],
}
OBJECTS: dict[str, dict[str, Any]] = {
    "nodes": {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}, "status": {"allocatable": {"cpu": "1"}}},
    "podcliquesets": {"spec": {"replicas": 1, "template": TEMPLATE}, "status": {"conditions": [CONDITION]}},
    "podcliques": {"spec": CLIQUE["spec"], "status": {"replicas": 1, "readyReplicas": 1, "conditions": [CONDITION]}},
    "podgangs": {
        "spec": {
            "podgroups": [{"name": "s-0-w", "minReplicas": 1, "podReferences": [{"namespace": "x", "name": "p"}]}]
        },
        "status": {"conditions": [{**CONDITION, "type": "Initialized"}]},
    },
    "pods": {
        "metadata": {"labels": LABELS, "ownerReferences": [OWNER], "deletionTimestamp": TIME},
        "spec": {"nodeName": "n", "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running", "conditions": [CONDITION, {**CONDITION, "type": "DisruptionTarget"}]},
    },
}


def places(value: object, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the path to every value in a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in pairs:
        yield (*path, key)
        yield from places(child, *path, key)


def absurd(document: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    root: Any = copy.deepcopy(document)
    parent = root
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return dict(root)


@pytest.mark.parametrize("resource", OBJECTS)
def test_rules_read_anything(resource: str) -> None:
    for path in places(OBJECTS[resource]):
        if path == ("metadata",):
            continue
        for value in ABSURD:
            story = Story()
            for other, document in OBJECTS.items():
                story.record(other, other[0], document)
            story.record(resource, resource[0], absurd(OBJECTS[resource], path, value))
            story.record("pods", "p", OBJECTS["pods"])
            records = story.history.records()
            assert len(invariants.judge(story.history)) == len(invariants.rules()), (path, value)
            placements.judge(records, 100.0)
            assert summary.overview(story.history.view()) and all(map(summary.describe, records))
