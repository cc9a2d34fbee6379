"""Tests of the names of nodes that are added to a cluster or removed from it."""

from __future__ import annotations

import pytest

from conformance.cluster import fleets, nodes
from conformance.cluster.resizing import first_free, indices, last_whole
from conformance.errors import UsageError


def names(manifests: list[nodes.Manifest]) -> list[str]:
    return [node["metadata"]["name"] for node in manifests]


def test_new_nodes_get_the_first_free_names() -> None:
    assert names(fleets.requested("tiny:2", used_names={"tiny-0", "tiny-2", "dgx-h100-1"})) == ["tiny-1", "tiny-3"]


def test_new_racks_are_new_as_a_whole() -> None:
    assert first_free({0, 1, 5}, 2, 2) == [2, 3, 6, 7]
    added = fleets.requested("tiny:1rack", used_names={"tiny-0"})
    assert names(added) == ["tiny-2", "tiny-3"]
    assert {node["metadata"]["labels"][nodes.RACK] for node in added} == {"tiny-rack-1"}


def test_nodes_of_another_pool_take_no_name() -> None:
    assert names(fleets.requested("tiny", "a", used_names={"tiny-0", "b-tiny-0"})) == ["a-tiny-0"]


def test_the_last_nodes_of_a_profile_go_first() -> None:
    existing = {"tiny-0", "tiny-2", "tiny-10", "dgx-h100-0"}
    assert fleets.chosen("tiny:2", existing) == ["tiny-2", "tiny-10"]
    assert fleets.chosen("tiny-0", existing) == ["tiny-0"]


def test_only_whole_racks_go() -> None:
    assert last_whole({0, 1, 2, 4, 5}, 2, 2) == [0, 1, 4, 5]
    assert last_whole({0, 2}, 1, 2) == []


def test_names_that_are_no_index_of_the_stem_do_not_count() -> None:
    assert indices("tiny", ["tiny-1", "tiny-02", "tiny-x", "tiny--1", "a-tiny-2", "tiny"]) == {1}


def test_a_fleet_goes_as_a_whole_and_comes_once() -> None:
    existing = set(names(fleets.requested("mixed")))
    assert set(fleets.chosen("mixed", existing)) == existing
    with pytest.raises(UsageError, match="nodes of the fleet mixed exist"):
        fleets.requested("mixed", used_names=existing)


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
def test_what_is_not_there_cannot_be_removed(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        fleets.chosen(text, {"tiny-0", "tiny-1"}, location="NODES")
    assert str(caught.value).startswith(message)
