"""Tests that the suite's objects get the labels and annotations that a gang scheduler needs, and no other changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.implementation import loading
from conformance.implementation.additions import with_additions
from conformance.implementation.fields import Metadata

IMPLEMENTATION = msgspec.structs.replace(
    loading.load("reference"),
    pods=Metadata({"queue": "a"}, {"note": "b"}),
    podgangs=Metadata({"queue": "c"}),
    resource_claims=Metadata({"queue": "d"}),
)
NAME = IMPLEMENTATION.scheduler_name


def test_pods_of_the_scheduler_gangs_and_claims_get_their_additions() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p", "labels": {"x": "y"}}, "spec": {"schedulerName": NAME}}
    assert with_additions(IMPLEMENTATION, pod)["metadata"] == {
        "name": "p", "labels": {"queue": "a", "x": "y"}, "annotations": {"note": "b"}
    }  # fmt: skip
    assert pod["metadata"] == {"name": "p", "labels": {"x": "y"}}
    gang = {"kind": "PodGang", "metadata": {"name": "g", "labels": {"queue": "of its own"}}}
    assert with_additions(IMPLEMENTATION, gang) == gang
    assert with_additions(IMPLEMENTATION, {"kind": "PodGang", "metadata": {}})["metadata"] == {"labels": {"queue": "c"}}
    claim = {"kind": "ResourceClaim", "metadata": {"name": "shared"}}
    assert with_additions(IMPLEMENTATION, claim)["metadata"] == {"name": "shared", "labels": {"queue": "d"}}


def test_a_set_gets_the_additions_for_gangs_and_its_templates_get_those_for_pods() -> None:
    cliques = [{"name": "w"}, {"name": "v", "labels": {"queue": "z"}, "annotations": {"n": "m"}}]
    pcs = {"kind": "PodCliqueSet", "metadata": {"name": "s"}, "spec": {"template": {"cliques": cliques}}}
    result = with_additions(IMPLEMENTATION, pcs)
    assert result["metadata"] == {"name": "s", "labels": {"queue": "c"}}
    assert result["spec"]["template"]["cliques"] == [
        {"name": "w", "labels": {"queue": "a"}, "annotations": {"note": "b"}},
        {"name": "v", "labels": {"queue": "z"}, "annotations": {"note": "b", "n": "m"}},
    ]
    assert with_additions(IMPLEMENTATION, result) == result


def test_additions_that_name_gang_and_clique_are_on_pods_that_have_them() -> None:
    additions = Metadata({"part": "${podClique}", "queue": "a"}, {"group": "of ${podGang}"})
    implementation = msgspec.structs.replace(IMPLEMENTATION, pods=additions)
    labels = {"grove.io/podgang": "s-0", "grove.io/podclique": "s-0-w"}
    pod = {"kind": "Pod", "metadata": {"labels": labels}, "spec": {"schedulerName": NAME}}
    assert with_additions(implementation, pod)["metadata"] == {
        "labels": {**labels, "part": "s-0-w", "queue": "a"}, "annotations": {"group": "of s-0"}
    }  # fmt: skip
    pod_without_gang = {"kind": "Pod", "metadata": {}, "spec": {"schedulerName": NAME}}
    assert with_additions(implementation, pod_without_gang)["metadata"] == {"labels": {"queue": "a"}}
    pcs = {"kind": "PodCliqueSet", "metadata": {}, "spec": {"template": {"cliques": [{"name": "w"}]}}}
    assert with_additions(implementation, pcs)["spec"]["template"]["cliques"] == [
        {"name": "w", "labels": {"queue": "a"}}
    ]


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "Pod", "metadata": {}, "spec": {"schedulerName": "another"}},
        {"kind": "Pod", "metadata": {}},
        {"kind": "Node", "metadata": {}},
        {"kind": "PodCliqueSet", "metadata": None, "spec": {"template": {"cliques": None}}},
        {"kind": "PodCliqueSet", "spec": {"template": {"cliques": ["x"]}}},
        {"kind": "PodCliqueSet", "spec": 1},
        {},
    ],
)
def test_other_and_malformed_objects_are_not_changed(obj: dict[str, Any]) -> None:
    assert with_additions(IMPLEMENTATION, obj) == obj


def test_without_additions_nothing_changes() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"schedulerName": NAME}}
    assert with_additions(loading.load("reference"), pod) == pod
