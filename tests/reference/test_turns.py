"""Tests of the choice of the set's replica that is updated first, with the operator and its caches (CHG-RU-11)."""

from __future__ import annotations

import pytest

from tests.reference.coherent.world import the_set, world

SIZES = {"groups alone": {"P": (1, 1)}, "a clique and a group": {"F": (1, 1), "P": (1, 1)}}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
async def test_a_replica_without_bound_pods_is_updated_first(sizes: dict[str, tuple[int, int]]) -> None:
    """Pods of scaling groups count in the same way as pods of standalone cliques."""
    rolling, pods = "RollingRecreate", len(sizes)
    async with world(the_set(strategy=rolling, **sizes), pods) as w:
        w.api.held_back = True
        await w.change(the_set(strategy=rolling, replicas=2, **sizes))
        await w.until(lambda: w.ready() == (pods, 2 * pods), "replica 1 waits for nodes")
        await w.change(the_set("v1", strategy=rolling, replicas=2, **sizes))
        await w.soon(lambda: bool(w.progress().get("currentlyUpdating")))
        assert [turn["replicaIndex"] for turn in w.progress()["currentlyUpdating"]] == [1]
