"""Tests of gangs, cliques and sets whose reconcilers act at different times, with delayed reconciles, strategy switches
and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import permutations
from typing import Any

import pytest

from reference_impl.control.operator import Operator
from reference_impl.plan import labels
from tests.reference.coherent.small_api import NEVER_READY
from tests.reference.coherent.world import World, the_set, world

SIZES = {"F": (2, 1), "P": (3, 1)}


async def test_pods_that_wait_for_an_anchor_start_without_a_reconcile_of_their_set(monkeypatch: pytest.MonkeyPatch):
    """The reconcile of a large set is delayed (GM-65)."""
    monkeypatch.setattr(Operator, "_settle_seconds", staticmethod(lambda pcs: 3600.0))
    w = World()
    w._tasks["pods"] = asyncio.create_task(w.api.run_pods())
    await w.start()
    try:
        await w.create(the_set(**SIZES))
        await w.until(lambda: w.serving(5), "deployed")
    finally:
        await w.stop()
        await w.stop("pods")


async def test_a_lost_pod_is_not_recreated_in_a_gang_that_the_map_no_longer_assigns():
    """The operator is killed right after it has written the map, and a pod that should move is lost in the meantime
    (COH-I11)."""
    sizes = {"P": (3, 1)}
    async with world(the_set(**sizes), 3) as w:
        original_write, has_died = w.api.finish, asyncio.Event()

        async def finish(write: Coroutine[Any, Any, Any]) -> Any:
            """Drop every write after the write of the map."""
            if has_died.is_set():
                write.close()
                await asyncio.Event().wait()
            answer = await original_write(write)
            if w.api.writes[-1][1][0] == "podgangmaps":
                has_died.set()
            return answer

        w.api.finish = finish  # type: ignore[method-assign]
        await w.change(the_set("v1", **sizes))
        await has_died.wait()
        await w.stop()
        w.api.finish = original_write  # type: ignore[method-assign]
        entries = w.api.objects["podgangmaps", "ns", "s-0"]["spec"]["entries"]
        [moved] = [entry["pcsgReplicaIndices"]["p"][0] for entry in entries[-1:]]
        [lost] = w.pods(f"p-{moved}-pw")
        await w.api.delete(("pods", "ns", lost["metadata"]["name"]))
        before = len(w.api.history)
        await w.start()
        await w.until(w.ended, "updated")
        created = [item for plural, kind, item in w.api.history[before:] if (plural, kind) == ("pods", "ADDED")]
        gang_name = lost["metadata"]["labels"][labels.PODGANG]
        assert [
            pod["metadata"]["name"] for pod in created if pod["metadata"]["labels"][labels.PODGANG] == gang_name
        ] == []


def changed_set(strategy: str, tag: str, *, ready: bool = False) -> dict[str, Any]:
    """Return the set with another image; the pods of P become Ready only if `ready`."""
    body = the_set(tag, strategy=strategy, **SIZES)
    if not ready:
        body["spec"]["template"]["cliques"][1]["annotations"] = {NEVER_READY: "yes"}
    return body


@pytest.mark.parametrize(("before", "after"), list(permutations(("Coherent", "RollingRecreate", "OnDelete"), 2)))
async def test_an_update_continues_after_a_strategy_switch(before: str, after: str):
    """The strategy is switched while P waits, and nothing else changes.

    RollingRecreate then replaces F at once, OnDelete replaces nothing (CHG-OD-01), and a coherent update keeps waiting
    (COH-150).
    """
    async with world(the_set(strategy=before, **SIZES), 5) as w:
        await w.change(changed_set(before, "v1"))
        await w.until(lambda: bool(w.progress()), "begun, and at rest")
        await w.change(changed_set(after, "v1"))
        expected = {"x:v1"} if after == "RollingRecreate" and before == "Coherent" else w.images("s-0-f")
        await w.until(lambda: w.images("s-0-f") == expected, "switched, and at rest")
        await w.change(changed_set(after, "v2", ready=True))
        if after == "OnDelete":
            await w.until(lambda: "updateEndedAt" in w.progress() and "x:v2" not in w.images(), "nothing is replaced")
        else:
            await w.until(lambda: w.ended() and w.images() == {"x:v2"}, "updated")
