"""Tests with a garbage collector that is inactive for a while. Deleted cliques, scaling groups and sets leave no pods
that exist alongside the pods of their successors of the same name (COH-127)."""

from __future__ import annotations

import pytest

from conformance import invariants
from conformance.history.query import History
from reference_impl.plan import labels
from tests.coherent.histories.in_memory import recorded_events
from tests.reference.coherent.world import World, the_set, world

SIZES = {"F": (2, 1), "P": (3, 1)}
STRATEGIES = ("Coherent", "RollingRecreate")


def generations(w: World) -> list[str]:
    """Return the negative verdicts of the rule about successive cliques."""
    results = invariants.judge(History(recorded_events(w.api), "ns"), ["INV-024"])
    return [str(result) for result in results if result.holds is not True]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_an_update_deletes_old_pods_itself(strategy: str):
    async with world(the_set(strategy=strategy, **SIZES), 5) as w:
        w.api.collects = False
        await w.change(the_set("v1", strategy=strategy, **SIZES))
        await w.until(w.ended, "updated")
        assert w.images() == {"x:v1"} and w.serving(5)
        assert generations(w) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_the_pods_of_a_deleted_group_are_deleted(strategy: str):
    async with world(the_set(strategy=strategy, **SIZES), 5) as w:
        w.api.collects = False
        old = w.uids("pw")
        await w.api.delete(("podcliquescalinggroups", "ns", "s-0-p"))
        await w.until(lambda: not w.uids() & old and w.serving(5), "recreated")
        assert generations(w) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_the_pods_of_a_removed_replica_are_deleted(strategy: str):
    async with world(the_set(strategy=strategy, replicas=2, **SIZES), 10) as w:
        w.api.collects = False
        await w.change(the_set(strategy=strategy, **SIZES))
        await w.until(lambda: w.serving(5), "scaled in")
        await w.change(the_set(strategy=strategy, replicas=2, **SIZES))
        await w.until(lambda: w.serving(10), "scaled out")
        assert generations(w) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_recreated_set_gets_no_pods_alongside_those_of_the_deleted_set(strategy: str):
    async with world(the_set(strategy=strategy, **SIZES), 5) as w:
        w.api.collects = False
        old = w.uids()
        await w.api.delete(("podcliquesets", "ns", "s"))
        await w.soon(lambda: w.api.get("podcliquesets", "s") is None)
        await w.create(the_set("v1", strategy=strategy, **SIZES))
        await w.soon(lambda: bool(w.status().get("lastErrors")))
        assert w.uids() == old
        await w.api.collect_again()
        await w.until(lambda: not w.uids() & old and w.serving(5), "collected")
        assert generations(w) == []


async def test_pods_stuck_in_termination_do_not_block_their_clique(monkeypatch: pytest.MonkeyPatch):
    """A pod on a dead node remains terminating, which counts as deleted (CHG-DEL-20)."""
    monkeypatch.setattr("tests.reference.coherent.small_api.LEAVING_SECONDS", 3600.0)
    async with world(the_set(strategy="RollingRecreate", P=(1, 1)), 1) as w:
        old = w.uids()
        await w.api.delete(("podcliques", "ns", "s-0-p-0-pw"))
        await w.soon(lambda: w.serving(1) and not w.uids() & old)
        assert len(w.api.all("pods")) == 2 and generations(w) == []


async def test_pods_that_will_be_orphaned_are_kept():
    async with world(the_set(strategy="RollingRecreate", **SIZES), 5) as w:
        address, [pod] = ("podcliques", "ns", "s-0-p-2-pw"), w.pods("s-0-p-2-pw")
        clique = w.api.objects[address]
        finalizers = [*clique["metadata"]["finalizers"], "orphan"]
        await w.api.patch(address, {"metadata": {"finalizers": finalizers}}, "merge", False)
        await w.api.delete(address)
        await w.until(lambda: address in w.api.objects, "nothing happens before the collector has come")
        pod_key = ("pods", "ns", pod["metadata"]["name"])
        await w.api.patch(pod_key, {"metadata": {"ownerReferences": None}}, "merge", False)
        finalizers.remove("orphan")
        await w.api.patch(address, {"metadata": {"finalizers": finalizers}}, "merge", False)
        await w.until(
            lambda: w.serving(5) and address in w.api.objects, "the next clique of the name adopts its orphan"
        )
        assert w.api.objects[pod_key]["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_a_gang_is_deleted_after_its_last_pod():
    """Even if the operator is killed in between, no pod is left without its gang (COH-163)."""
    async with world(the_set(**SIZES), 5) as w:
        before = len(w.api.history)
        await w.change(the_set("v1", **SIZES))
        await w.until(w.ended, "updated")
        living: dict[str, str] = {}
        for plural, kind, item in w.api.history:
            meta = item["metadata"]
            if plural == "pods" and kind != "DELETED" and "deletionTimestamp" not in meta:
                living[meta["uid"]] = meta["labels"][labels.PODGANG]
            elif plural == "pods":
                living.pop(meta["uid"], None)
            elif plural == "podgangs" and kind == "DELETED":
                assert meta["name"] not in living.values()
        assert any(kind == "DELETED" and plural == "podgangs" for plural, kind, _ in w.api.history[before:])
