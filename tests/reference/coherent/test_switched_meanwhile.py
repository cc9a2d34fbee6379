"""Tests of strategy switches during an update, in all directions."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from reference_impl.plan.coherent import conditions
from tests.reference.coherent.simulation import deployed, named
from tests.reference.coherent.small_api import NEVER_READY
from tests.reference.coherent.world import World, the_set, world

SIZES = {"F": (2, 1), "P": (3, 1)}
STRATEGIES = ("Coherent", "RollingRecreate", "OnDelete")


def count_new_pods(w: World) -> int:
    """Return the number of pods that have the new version."""
    return sum(pod["spec"]["containers"][0]["image"] == "x:v1" for pod in w.pods())


async def start_update(w: World, strategy: str, pods: int) -> None:
    """Change the set, and wait until `pods` pods have the new version. Under OnDelete, delete that many pods."""
    await w.change(the_set("v1", strategy=strategy, **SIZES))
    if strategy == "OnDelete":
        await w.until(lambda: "updateEndedAt" in w.progress(), "begun")
        for pod in w.pods()[:pods]:
            await w.api.delete(("pods", "ns", pod["metadata"]["name"]))
    await w.soon(lambda: count_new_pods(w) >= pods)


@pytest.mark.parametrize("pods", [1, 3])
@pytest.mark.parametrize(("before", "after"), list(permutations(STRATEGIES, 2)))
async def test_an_update_ends_after_a_strategy_switch(before: str, after: str, pods: int):
    """The set is created with the first strategy.

    OnDelete ends the update in its current state (CHG-RU-06), and a switch does not replace the pods that OnDelete has
    left (COH-274).
    """
    async with world(the_set(strategy=before, **SIZES), 5) as w:
        await start_update(w, before, pods)
        await w.change(the_set("v1", strategy=after, **SIZES))
        await w.until(lambda: w.ended() and w.serving(5), "the update has ended")
        if "OnDelete" not in (before, after):
            assert w.images() == {"x:v1"}
        old = w.uids()
        await w.change(the_set("v2", strategy=after, **SIZES))
        if after == "OnDelete":
            await w.until(w.ended, "the next update has ended")
            assert w.uids() == old
        else:
            await w.until(lambda: w.ended() and w.images() == {"x:v2"}, "the next update has ended")


async def test_gang_conditions_follow_their_pods_after_a_switch_from_coherent():
    """The scheduler leaves these conditions to the operator, which has started to write them (COH-086)."""
    async with world(the_set(**SIZES), 5) as w:
        await w.change(the_set(strategy="RollingRecreate", **SIZES))
        await w.until(lambda: True, "switched")
        body = the_set(strategy="RollingRecreate", **SIZES)
        body["spec"]["template"]["cliques"][1]["annotations"] = {NEVER_READY: "yes"}
        await w.change(body)
        await w.soon(lambda: w.ready()[0] < 5)
        await w.until(lambda: True, "stopped")
        for gang in w.api.all("podgangs"):
            statuses = {condition["type"]: condition["status"] for condition in gang["status"]["conditions"]}
            members = w.pods_by_gang()[gang["metadata"]["name"]]
            ready = all(w.ready(clique)[0] for clique in members)
            assert statuses[conditions.READY] == str(ready), gang["metadata"]["name"]


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_members_leave_gangs_in_which_another_strategy_has_replaced_members(pods: int):
    """All entries already have the current generation; all replicas of P and some pods of F have the current template.
    The remaining pods of F must not be replaced within the anchor that holds them."""
    replica = deployed("F4/1 P3/2")
    replica.change("v1", (named("F"), named("P")))
    replica.layout = tuple(replace(entry, generation="v1") for entry in replica.layout)
    oldest = replica.layout[0].key
    for member in replica.members[named("P")] + replica.members[named("F")][:pods]:
        member.version = "v1"
    replica.update()
    assert {member.version for members in replica.members.values() for member in members} == {"v1"}
    assert sum(member.entry == oldest for member in replica.members[named("F")]) == pods
