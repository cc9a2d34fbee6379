"""Scale between updates, and the layout that follows from the mappings (spec COH-240 to COH-253)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reference_impl.plan.coherent.layout import Entry, Layout
from reference_impl.plan.coherent.naming import Names, newest, number, order
from reference_impl.plan.coherent.observed import ObservedPod
from reference_impl.plan.coherent.steady import rebuilt, scaled_clique, scaled_group
from tests.reference.coherent.simulation import table

T = 1_700_000_000_000_000_000


def gang(offset: int) -> str:
    return f"s-0-{T + offset}"


def fresh(count: int) -> list[str]:
    return [gang(100 + offset) for offset in range(count)]


def pods(text: str) -> list[ObservedPod]:
    """Pods as `gang offset:rank`; those of rank 0 are not Ready."""
    result = []
    for i, word in enumerate(text.split()):
        offset, rank = word.split(":")
        result.append(ObservedPod(f"pod-{i}", gang(int(offset)), rank != "0", True, (int(rank),)))
    return result


LAYOUT: Layout = (
    Entry(gang(0), "v0", {"F": 2}, {"P": (0,), "D": (0,)}, anchor=True),
    Entry(gang(1), "v0", groups={"P": (1,)}),
    Entry(gang(2), "v1", {"F": 3}, {"D": (1,)}, anchor=True),
)


def test_scaling_groups_grow_by_a_gang_for_each_replica() -> None:
    assert scaled_group({gang(0): [0], gang(1): [1]}, 4, fresh) == {
        gang(0): (0,),
        gang(1): (1,),
        gang(100): (2,),
        gang(101): (3,),
    }


@pytest.mark.parametrize(
    ("mapping", "replicas", "expected"),
    [
        ({gang(0): [0, 1], gang(1): [2], gang(2): [3]}, 3, {gang(0): (0, 1), gang(1): (2,)}),
        ({gang(0): [0, 2], gang(1): [1]}, 2, {gang(0): (0,), gang(1): (1,)}),
        ({"s-0": [0], "s-0-p-0": [1], gang(0): [2]}, 2, {"s-0": (0,), "s-0-p-0": (1,)}),
        ({gang(0): [0]}, 0, {}),
    ],
    ids=["newest gang", "highest index of an anchor", "legacy gangs stay (COH-S48)", "no replicas"],
)
def test_scaling_groups_shrink_from_the_highest_index(
    mapping: dict[str, list[int]], replicas: int, expected: dict[str, tuple[int, ...]]
) -> None:
    assert scaled_group(mapping, replicas, fresh) == expected


def test_gaps_and_duplicates_of_scaling_groups_are_closed() -> None:
    mapping = {gang(0): [0, 3], gang(1): [0, 2]}
    assert scaled_group(mapping, 4, fresh) == {gang(0): (0, 3), gang(1): (2,), gang(100): (1,)}


def test_new_pods_join_the_newest_gang_of_their_clique() -> None:
    """Names are compared by number: nine digits more are newer than any base gang."""
    assert scaled_clique({"s-0": 1, gang(9): 1, gang(10): 1}, 5, [], LAYOUT, "v1", fresh)[gang(10)] == 3
    assert scaled_clique({gang(0): 2}, 4, [], LAYOUT, "v1", fresh) == {gang(0): 4}, "not the newest anchor (COH-189)"


def test_first_pods_of_a_clique_join_an_anchor_of_the_present_generation() -> None:
    assert scaled_clique({}, 2, [], LAYOUT, "v1", fresh) == {gang(2): 2}
    assert scaled_clique({}, 2, [], LAYOUT, "v2", fresh) == {gang(100): 2}


@pytest.mark.parametrize(
    ("replicas", "found", "expected"),
    [
        (4, "0:5 0:5 2:5 2:0 2:5", {gang(0): 2, gang(2): 2}),
        (3, "0:4 0:5 2:3 2:6 2:7", {gang(0): 1, gang(2): 2}),
        (4, "0:5 2:1 2:5 2:5", {gang(0): 1, gang(2): 3}),
        (0, "0:5 0:5 2:5 2:5 2:5", {}),
    ],
    ids=["a pod that is not Ready", "by rank over all gangs", "a lost pod first", "all"],
)
def test_scale_in_of_a_clique(replicas: int, found: str, expected: dict[str, int]) -> None:
    mapping = {gang(0): 2, gang(2): 3}
    assert scaled_clique(mapping, replicas, pods(found), LAYOUT, "v1", fresh) == expected


def test_the_layout_is_rebuilt_from_the_mappings() -> None:
    result = rebuilt(
        LAYOUT,
        {"F": {gang(0): 2, gang(2): 2}},
        {"P": {gang(0): [0], gang(1): [1], gang(4): [2]}, "D": {gang(0): [0], gang(3): [1]}},
        "v1",
    )
    assert table(result) == "F2 D0 P0 | P1 | F2@v1 | D1@v1 | P2@v1"
    assert [entry.name for entry in result] == [gang(0), gang(1), gang(2), gang(3), gang(4)]
    assert [entry.anchor for entry in result] == [True, False, True, False, False]


def test_a_gang_that_was_removed_from_the_map_returns_as_it_was() -> None:
    pods, indices = {"F": {gang(0): 2, gang(2): 3}}, {"P": {gang(0): [0], gang(1): [1]}, "D": None}
    assert rebuilt(LAYOUT[1:], pods, indices, "v2", LAYOUT)[0] == replace(LAYOUT[0], groups={"P": (0,)})


def test_a_mapping_that_is_not_written_yet_changes_nothing() -> None:
    assert rebuilt(LAYOUT, {"F": None}, {"P": None, "D": None}, "v1") == LAYOUT


def test_a_component_without_replicas_leaves_the_layout() -> None:
    result = rebuilt(LAYOUT, {"F": None}, {"P": {}, "D": None}, "v1")
    assert table(result) == "F2 D0 | F3 D1@v1"


def test_a_gang_that_only_standalone_pods_made_is_an_anchor() -> None:
    result = rebuilt(LAYOUT[1:2], {"F": {gang(5): 2}}, {"P": None}, "v1")
    assert table(result) == "P1 | F2@v1"
    assert result[1].anchor


def test_names_grow_even_if_the_clock_steps_back() -> None:
    now = [T]
    names = Names(lambda: now[0])
    assert names.take("s-0", 2, []) == [gang(0), gang(1)]
    now[0] = T - 50
    assert names.take("s-0", 1, ["s-0", gang(5)]) == [gang(6)]
    assert names.take("s-1", 1, []) == [f"s-1-{T + 7}"], "no number is given twice"
    assert names.take("s-0", 0, []) == []
    assert names.take("s-0", 1, []) == [gang(8)]


def test_order_of_names() -> None:
    legacy = ["s-0", "s-0-prefill-0", "s-0-prefill-10", "s-0-prefill-2"]
    assert sorted([gang(10), gang(9), *legacy], key=order)[-2:] == [gang(9), gang(10)]
    assert min([*legacy, gang(0)], key=order) == "s-0"
    assert newest(["s-0", gang(3)]) == gang(3)
    assert newest([]) is None
    assert number("s-0-prefill-2") is None
