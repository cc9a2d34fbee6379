"""Tests of scaling during a coherent update while no operator runs to reject it. The update ends nevertheless, with the
requested number of replicas (spec COH-178, COH-S29)."""

from __future__ import annotations

import pytest

from tests.reference.coherent.world import the_set, world

SIZES = {"F": (4, 2), "P": (4, 1)}


@pytest.mark.parametrize("replica", [0, 1])
@pytest.mark.parametrize("size", [2, 5])
async def test_a_group_can_be_scaled_during_an_update(replica: int, size: int):
    async with world(the_set(replicas=2, **SIZES), 16) as w:
        await w.change(the_set("v1", replicas=2, **SIZES))
        await w.soon(lambda: "x:v1" in w.images("s-0-p"))
        await w.scale("podcliquescalinggroups", f"s-{replica}-p", size)
        await w.until(lambda: w.ended() and w.images() == {"x:v1"}, "updated")
        assert w.serving(12 + size) and w.mixed() == []
        parts = sorted(part for gang in w.gangs(replica) for part in gang.split() if part[0] == "P")
        assert parts == [f"P{index}" for index in range(size)]


@pytest.mark.parametrize("replica", [0, 1])
@pytest.mark.parametrize("size", [2, 6])
async def test_a_clique_can_be_scaled_during_an_update(replica: int, size: int):
    async with world(the_set(replicas=2, **SIZES), 16) as w:
        await w.change(the_set("v1", replicas=2, **SIZES))
        await w.soon(lambda: "x:v1" in w.images("s-0-f"))
        await w.scale("podcliques", f"s-{replica}-f", size)
        await w.until(lambda: w.ended() and w.images() == {"x:v1"}, "updated")
        assert w.serving(12 + size) and w.mixed() == []
