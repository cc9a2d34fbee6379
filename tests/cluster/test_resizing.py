"""Tests of the names of nodes that are added to a cluster or removed from it."""

from __future__ import annotations

import pytest

from conformance.cluster import fleets, nodes
from conformance.cluster.resizing import first_free, indices, last_complete
from conformance.errors import UsageError


def names(manifests: list[nodes.Manifest]) -> list[str]:
    return [node["metadata"]["name"] for node in manifests]


def test_new_nodes_get_the_first_free_names() -> None:
    assert names(fleets.requested_nodes("tiny:2", used_names={"tiny-0", "tiny-2", "dgx-h100-1"})) == [
        "tiny-1",
        "tiny-3",
    ]


def test_new_racks_contain_only_new_nodes() -> None:
    assert first_free({0, 1, 5}, 2, 2) == [2, 3, 6, 7]
    new_nodes = fleets.requested_nodes("tiny:1rack", used_names={"tiny-0"})
    assert names(new_nodes) == ["tiny-2", "tiny-3"]
    assert {node["metadata"]["labels"][nodes.RACK] for node in new_nodes} == {"tiny-rack-1"}


def test_nodes_of_another_pool_occupy_no_names() -> None:
    assert names(fleets.requested_nodes("tiny", "a", used_names={"tiny-0", "b-tiny-0"})) == ["a-tiny-0"]


def test_the_last_nodes_of_a_profile_are_removed_first() -> None:
    existing_names = {"tiny-0", "tiny-2", "tiny-10", "dgx-h100-0"}
    assert fleets.chosen_nodes("tiny:2", existing_names) == ["tiny-2", "tiny-10"]
    assert fleets.chosen_nodes("tiny-0", existing_names) == ["tiny-0"]


def test_only_complete_racks_are_removed() -> None:
    assert last_complete({0, 1, 2, 4, 5}, 2, 2) == [0, 1, 4, 5]
    assert last_complete({0, 2}, 1, 2) == []


def test_names_without_an_index_of_the_stem_are_ignored() -> None:
    assert indices("tiny", ["tiny-1", "tiny-02", "tiny-x", "tiny--1", "a-tiny-2", "tiny"]) == {1}


def test_a_fleet_is_removed_completely_and_exists_only_once() -> None:
    existing_names = set(names(fleets.requested_nodes("mixed")))
    assert set(fleets.chosen_nodes("mixed", existing_names)) == existing_names
    with pytest.raises(UsageError, match="nodes of the fleet mixed exist"):
        fleets.requested_nodes("mixed", used_names=existing_names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tiny:3", "NODES: only 2 such nodes exist — ask for fewer than tiny:3"),
        ("dgx-h100", "NODES: only 0 such nodes exist"),
        ("tiny-7", "NODES: unknown node 'tiny-7' — did you mean \"tiny-1\"?"),
        ("worker.example", "NODES: unknown node 'worker.example' — known: cpu, "),
        ("tny:1", "NODES: unknown node profile 'tny' — did you mean \"tiny\"?"),
        ("mixed", "NODES: no node of the fleet mixed exists"),
    ],
)
def test_nodes_that_do_not_exist_cannot_be_removed(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        fleets.chosen_nodes(text, {"tiny-0", "tiny-1"}, location="NODES")
    assert str(caught.value).startswith(message)
