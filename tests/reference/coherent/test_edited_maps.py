"""Tests that PodGangMaps edited by a user are restored without any effect of the edit (spec COH-I12, COH-215)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reference_impl.plan import labels
from tests.reference.coherent.world import World, the_set, world

SIZES = {"F": (4, 2), "P": (4, 1), "D": (2, 1)}
Entries = list[dict[str, Any]]
Edit = Callable[[Entries], None]


def entry_of_replica(entries: Entries, group: str, index: int) -> dict[str, Any]:
    """Return the entry that holds a replica of a scaling group."""
    return next(entry for entry in entries if index in (entry.get("pcsgReplicaIndices") or {}).get(group, ()))


def put_index_into_two_entries(entries: Entries) -> None:
    entries[-1]["pcsgReplicaIndices"] = {"p": [3]}


def put_index_into_anchor(entries: Entries) -> None:
    entry_of_replica(entries, "p", 0)["pcsgReplicaIndices"]["p"] = [0, 3]


def move_pods(entries: Entries) -> None:
    entries[0]["podCliques"]["f"] -= 1
    entry_of_replica(entries, "p", 3)["podCliques"] = {"f": 1}


def add_pods(entries: Entries) -> None:
    entry_of_replica(entries, "p", 3)["podCliques"] = {"f": 2}


def remove_entry(entries: Entries) -> None:
    entries.remove(entry_of_replica(entries, "p", 3))


def remove_anchor(entries: Entries) -> None:
    entries.remove(entry_of_replica(entries, "p", 0))


def change_role(entries: Entries) -> None:
    entry_of_replica(entries, "p", 0)["role"] = "Tail"


def depend_on_missing_entry(entries: Entries) -> None:
    entry_of_replica(entries, "p", 3)["dependsOn"] = [""]


def empty_all_entries(entries: Entries) -> None:
    entries.clear()


def add_unknown_entry(entries: Entries) -> None:
    hash = "podCliqueSetGenerationHash"
    entries.append({"epoch": "9", hash: "x", "role": "Tail", "pcsgReplicaIndices": {"p": [3, 9]}})


EDITS = (
    put_index_into_two_entries,
    put_index_into_anchor,
    move_pods,
    add_pods,
    remove_entry,
    remove_anchor,
    change_role,
    depend_on_missing_entry,
    empty_all_entries,
    add_unknown_entry,
)


async def edit(w: World, change: Edit) -> None:
    """Edit the replica's map, as a user can if admission does not prevent it."""
    gang_map = w.api.get("podgangmaps", "s-0")
    assert gang_map is not None
    entries = [dict(entry) for entry in gang_map["spec"]["entries"]]
    for entry in entries:
        for part in ("podCliques", "pcsgReplicaIndices"):
            if part in entry:
                entry[part] = dict(entry[part])
    change(entries)
    await w.api.patch(("podgangmaps", "ns", "s-0"), {"spec": {"entries": entries}}, "merge", False)


def cliques_in_two_gangs(w: World) -> list[str]:
    """Return the cliques of scaling groups that had pods in two gangs at any time."""
    present: dict[str, tuple[str, str]] = {}
    cliques = []
    for plural, kind, pod in w.api.history:
        pod_labels = pod["metadata"].get("labels") or {}
        if plural != "pods" or labels.SCALING_GROUP not in pod_labels:
            continue
        if kind == "DELETED" or "deletionTimestamp" in pod["metadata"]:
            present.pop(pod["metadata"]["uid"], None)
            continue
        present[pod["metadata"]["uid"]] = pod_labels[labels.PODCLIQUE], pod_labels[labels.PODGANG]
        assignments = set(present.values())
        cliques += [clique for clique, _ in assignments if sum(other == clique for other, _ in assignments) > 1]
    return sorted(set(cliques))


@pytest.mark.parametrize("change", EDITS)
async def test_an_edited_map_is_corrected(change: Edit):
    async with world(the_set(**SIZES), 10) as w:
        gangs, old, entries = w.gangs(), w.uids(), w.map()
        await edit(w, change)
        assert w.map() != entries
        await w.until(lambda: w.gangs() == gangs and w.map() == entries, "put right")
        assert w.uids() == old and cliques_in_two_gangs(w) == []


@pytest.mark.parametrize("change", [put_index_into_two_entries, put_index_into_anchor, remove_entry, add_unknown_entry])
async def test_a_map_that_is_edited_during_an_update_is_repaired(change: Edit):
    async with world(the_set(**SIZES), 10) as w:
        await w.change(the_set("v1", broken=True, **SIZES))
        await w.until(lambda: "x:v1" in w.images(), "stopped")
        old = w.uids()
        await edit(w, change)
        await w.until(lambda: True, "at rest")
        assert w.uids() == old and cliques_in_two_gangs(w) == []
        parts = [part for gang in w.gangs() for part in gang.split() if part[0] in "PD"]
        assert sorted(parts) == ["D0", "D1", "P0", "P1", "P2", "P3"]
        await w.change(the_set("v2", **SIZES))
        await w.until(w.ended, "updated")
        assert w.images() == {"x:v2"} and cliques_in_two_gangs(w) == []
