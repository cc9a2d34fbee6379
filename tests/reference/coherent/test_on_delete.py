"""Tests of sets that were changed under OnDelete before a coherent update. Their old pods stay until the next change,
which also replaces them (spec CHG-OD-07, COH-274)."""

from __future__ import annotations

import pytest

from tests.reference.coherent.world import the_set, world

SIZES = {"F": (4, 2), "P": (3, 1), "D": (2, 1)}


@pytest.mark.parametrize("first", ["OnDelete", "Coherent"])
async def test_the_next_change_replaces_pods_that_on_delete_left(first: str):
    async with world(the_set(strategy=first, **SIZES), 9) as w:
        if first != "OnDelete":
            await w.change(the_set(strategy="OnDelete", **SIZES))
        await w.change(the_set({"F": "v1", "P": "v1"}, strategy="OnDelete", **SIZES))
        await w.until(w.ended, "changed with OnDelete")
        old = w.uids()
        await w.change(the_set({"F": "v1", "P": "v1"}, **SIZES))
        await w.until(lambda: w.gangs(), "coherent")
        assert w.uids() == old and w.images() == {"x:v0"} and w.ended()
        await w.change(the_set({"F": "v1", "P": "v1", "D": "v2"}, **SIZES))
        await w.until(w.ended, "updated")
        assert (w.images("s-0-f"), w.images("pw"), w.images("dw")) == ({"x:v1"}, {"x:v1"}, {"x:v2"})
        assert w.mixed() == []


async def test_pods_replaced_under_on_delete_are_not_replaced_again():
    async with world(the_set(strategy="OnDelete", **SIZES), 9) as w:
        changed = the_set("v1", strategy="OnDelete", **SIZES)
        await w.change(changed)
        await w.until(w.ended, "changed with OnDelete")
        for pod in w.pods("s-0-f") + w.pods("pw"):
            await w.api.delete(("pods", "ns", pod["metadata"]["name"]))
        await w.until(lambda: w.images("s-0-f") == w.images("pw") == {"x:v1"} and w.serving(9), "replaced by hand")
        unchanged = w.uids("s-0-f") | w.uids("pw")
        await w.change(the_set("v1", **SIZES))
        await w.until(lambda: w.gangs(), "coherent")
        await w.change(the_set({"F": "v1", "P": "v1", "D": "v2"}, **SIZES))
        await w.until(w.ended, "updated")
        assert unchanged <= w.uids() and w.images("dw") == {"x:v2"}


async def test_the_next_update_completes_an_update_that_on_delete_ended():
    async with world(the_set(**SIZES), 9) as w:
        await w.change(the_set({"F": "v1", "P": "v1"}, broken=True, **SIZES))
        await w.until(lambda: w.images("s-0-f") == {"x:v0", "x:v1"}, "stopped")
        await w.change(the_set({"F": "v1", "P": "v1"}, strategy="OnDelete", broken=True, **SIZES))
        await w.until(lambda: "updateEndedAt" in w.progress(), "ended by OnDelete")
        await w.change(the_set({"F": "v1", "P": "v1", "D": "v2"}, **SIZES))
        await w.until(w.ended, "updated")
        assert (w.images("s-0-f"), w.images("pw"), w.images("dw")) == ({"x:v1"}, {"x:v1"}, {"x:v2"})


async def test_lost_pods_that_on_delete_left_are_recreated():
    async with world(the_set(strategy="OnDelete", **SIZES), 9) as w:
        await w.change(the_set("v1", strategy="OnDelete", **SIZES))
        await w.until(w.ended, "changed with OnDelete")
        await w.change(the_set("v1", **SIZES))
        await w.until(lambda: w.gangs(), "coherent")
        for clique in ("s-0-f", "s-0-p-1-pw"):
            await w.api.delete(("pods", "ns", w.pods(clique)[0]["metadata"]["name"]))
        await w.until(lambda: w.serving(9) and w.images("s-0-p-1-pw") == {"x:v1"}, "recreated")
        assert sorted(pod["spec"]["containers"][0]["image"] for pod in w.pods("s-0-f")) == ["x:v0"] * 3 + ["x:v1"]


@pytest.mark.parametrize("strategy", ["OnDelete", "RollingRecreate"])
async def test_a_switch_that_changes_the_template_updates_coherently(strategy: str):
    async with world(the_set(strategy=strategy, **SIZES), 9) as w:
        unchanged = w.uids("dw")
        await w.change(the_set({"F": "v1", "P": "v1"}, **SIZES))
        await w.until(w.ended, "updated")
        assert (w.images("s-0-f"), w.images("pw")) == ({"x:v1"}, {"x:v1"})
        assert w.uids("dw") == unchanged and w.mixed() == []
