"""Tests of coherent updates with the whole operator on an in-memory API server: traces, scaling, failures, restarts and
strategy switches."""

from __future__ import annotations

from reference_impl.plan import labels
from tests.reference.coherent.world import World, shape, the_set, world

FPD = {"F": (5, 2), "P": (4, 1), "D": (3, 1)}
FIRST = ["F5 P0 D0", "P1", "P2", "P3", "D1", "D2"]


async def test_all_components_are_deployed_and_updated():
    async with world(the_set(**FPD), 12) as w:
        assert w.gangs() == FIRST
        gangs = w.api.all("podgangs")
        minimums = {g["name"]: g["minReplicas"] for gang in gangs for g in gang["spec"]["podgroups"]}
        assert minimums["s-0-f"] == 2 and minimums["s-0-p-0-pw"] == 1
        before = len(w.api.history)
        await w.change(the_set("v1", **FPD))
        await w.until(w.ended, "updated")
        assert [shape(item) for plural, _, item in w.api.history[before:] if plural == "podgangmaps"] == [
            ["F3", "P1", "P2", "P3", "D1", "D2", "F2 P0 D0"],
            ["F3", "P2", "P3", "D1", "D2", "F2 P0 D0", "P1"],
            ["F1", "P3", "D2", "F2 P0 D0", "P1", "F2 P2 D1"],
            ["F1", "D2", "F2 P0 D0", "P1", "F2 P2 D1", "P3"],
            ["F2 P0 D0", "P1", "F3 P2 D1", "P3", "D2"],
        ]
        assert w.images() == {"x:v1"} and w.mixed() == []
        assert w.status()["updatedReplicas"] == 1
        assert "inScopePodCliqueScalingGroups" not in w.progress(), "cleared at the end (GM-153)"


async def test_components_are_scaled_after_an_update():
    async with world(the_set(**FPD), 12) as w:
        await w.change(the_set("v1", **FPD))
        await w.until(w.ended, "updated")
        await w.scale("podcliquescalinggroups", "s-0-p", 6)
        await w.until(lambda: w.serving(14), "P 6")
        assert w.gangs()[:2] == ["P4", "P5"], "in the entry for scale-out, which is older than the update"
        await w.scale("podcliquescalinggroups", "s-0-p", 3)
        await w.until(lambda: w.serving(11), "P 3")
        assert w.gangs() == ["F2 P0 D0", "P1", "F3 P2 D1", "D2"]
        await w.scale("podcliquescalinggroups", "s-0-d", 1)
        await w.until(lambda: w.serving(9), "D 1")
        await w.scale("podcliquescalinggroups", "s-0-p", 2)
        await w.scale("podcliques", "s-0-f", 7)
        await w.until(lambda: w.serving(10), "F 7")
        assert w.gangs() == ["F2 P0 D0", "P1", "F5"]
        await w.scale("podcliques", "s-0-f", 2)
        await w.until(lambda: w.serving(5), "F 2")
        assert sum(int(part[1:]) for gang in w.gangs() for part in gang.split() if part[0] == "F") == 2
        assert {len(members) for members in w.pods_by_gang().values()} <= {1, 2, 3}


async def test_a_partial_update_leaves_other_components_unchanged():
    async with world(the_set(**FPD), 12) as w:
        unchanged = w.uids("f") | w.uids("pw")
        await w.change(the_set({"D": "v1"}, **FPD))
        await w.until(w.ended, "D updated")
        assert unchanged <= w.uids() and w.images("dw") == {"x:v1"}
        assert w.gangs() == ["F5 P0", "P1", "P2", "P3", "D0", "D1", "D2"]
        await w.scale("podcliques", "s-0-f", 6)
        await w.until(lambda: w.serving(13), "F 6")
        assert w.gangs()[0] == "F6 P0"
        other_uids = w.uids("dw") | w.uids("pw")
        await w.change(the_set({"D": "v1", "F": "v1"}, **FPD))
        await w.until(w.ended, "F updated")
        assert other_uids <= w.uids() and w.images("s-0-f") == {"x:v1"} and w.mixed() == []


async def test_a_reverted_change_keeps_untouched_members():
    sizes = {"P": (4, 1)}
    async with world(the_set(**sizes), 4) as w:
        old_uids = w.uids()
        await w.change(the_set("v1", **sizes))
        await w.soon(lambda: [pod["spec"]["containers"][0]["image"] for pod in w.pods()].count("x:v1") == 2)
        await w.change(the_set("v0", **sizes))
        await w.until(w.ended, "reverted")
        assert w.images() == {"x:v0"} and len(old_uids & w.uids()) >= 1 and w.mixed() == []
        assert sorted(part for gang in w.gangs() for part in gang.split()) == ["P0", "P1", "P2", "P3"]


async def test_a_version_that_never_becomes_ready_stops_at_its_first_step_and_can_be_fixed():
    sizes = {"F": (4, 2), "P": (4, 2)}
    async with world(the_set(**sizes), 8) as w:
        await w.change(the_set("v1", broken=True, **sizes))
        await w.until(lambda: w.gangs() == ["F2", "P2", "P3", "F2 P0 P1"], "stopped")
        turn = w.progress()["currentlyUpdating"][0]
        assert len(turn["inFlightEpochs"]) == 1 and turn["inFlightEpochs"][0] in turn["message"]
        assert w.ready("s-0-f") == (2, 4) and w.ready("pw") == (2, 4)
        await w.change(the_set("v2", **sizes))
        await w.until(w.ended, "fixed")
        assert w.images() == {"x:v2"} and w.gangs() == ["F2 P0 P1", "F2 P2 P3"] and w.mixed() == []


async def test_lost_pods_of_the_old_version_are_not_recreated_with_the_new_version():
    sizes = {"F": (4, 2), "P": (4, 2)}
    async with world(the_set(**sizes), 8) as w:
        await w.change(the_set("v1", broken=True, **sizes))
        await w.until(lambda: len(w.gangs()) == 4, "stopped")
        old_pod = next(pod for pod in w.pods("s-0-f") if pod["spec"]["containers"][0]["image"] == "x:v0")
        await w.api.delete(("pods", "ns", old_pod["metadata"]["name"]))
        await w.until(lambda: len(w.pods("s-0-f")) == 3, "one pod lost, and not replaced")
        assert w.mixed() == []
        await w.change(the_set("v2", **sizes))
        await w.until(w.ended, "updated")
        assert w.images() == {"x:v2"} and w.serving(8) and w.mixed() == []


async def test_replicas_of_the_set_are_updated_one_after_another():
    sizes = {"F": (2, 1), "P": (2, 1)}
    async with world(the_set(replicas=2, **sizes), 8) as w:
        await w.change(the_set("v1", replicas=2, **sizes))
        await w.until(w.ended, "updated")
        turns = [
            turn["replicaIndex"]
            for plural, _, item in w.api.history
            if plural == "podcliquesets"
            for turn in ((item.get("status") or {}).get("updateProgress") or {}).get("currentlyUpdating") or ()
        ]
        assert turns == sorted(turns) and set(turns) == {0, 1}
        assert w.gangs(0) == w.gangs(1) == ["F1 P0", "F1 P1"]


async def test_switching_to_coherent_and_back_restarts_no_pods():
    async with world(the_set(strategy="RollingRecreate", F=(3, 1), P=(2, 1), D=(1, 1)), 6) as w:
        assert w.gangs() == ["F3 P0 D0", "P1"]
        old_uids, gang_names = w.uids(), {g["metadata"]["name"] for g in w.api.all("podgangs")}
        await w.change(the_set(F=(3, 1), P=(2, 1), D=(1, 1)))
        await w.until(lambda: w.gangs() == ["F3 P0 D0", "P1"], "coherent")
        assert w.uids() == old_uids and {g["metadata"]["name"] for g in w.api.all("podgangs")} == gang_names
        await w.scale("podcliquescalinggroups", "s-0-p", 3)
        await w.until(lambda: w.serving(7), "P 3")
        assert w.gangs() == ["F3 P0 D0", "P1", "P2"]
        await w.change(the_set("v1", F=(3, 1), P=(2, 1), D=(1, 1)))
        await w.until(w.ended, "updated")
        assert w.images() == {"x:v1"} and w.mixed() == []
        names = {g["metadata"]["name"] for g in w.api.all("podgangs")}
        await w.change(the_set("v2", strategy="RollingRecreate", F=(3, 1), P=(2, 1), D=(1, 1)))
        await w.until(lambda: w.ended() and w.images() == {"x:v2"}, "rolled")
        assert {g["metadata"]["name"] for g in w.api.all("podgangs")} == names
        old_uids = w.uids()
        await w.change(the_set("v2", F=(3, 1), P=(2, 1), D=(1, 1)))
        await w.until(lambda: True, "coherent again")
        assert w.uids() == old_uids and w.ended()


async def test_an_update_that_stops_being_coherent_continues_pod_by_pod():
    sizes = {"F": (4, 2), "P": (4, 1)}
    async with world(the_set(**sizes), 8) as w:
        await w.change(the_set("v1", **sizes))
        await w.soon(lambda: "x:v1" in w.images())
        await w.change(the_set("v1", strategy="RollingRecreate", **sizes))
        await w.until(w.ended, "ended")
        assert w.images() == {"x:v1"} and "inScopeStandalonePodCliques" not in w.progress()
        old_uids = w.uids()
        await w.change(the_set("v1", **sizes))
        await w.until(lambda: True, "coherent again")
        assert w.uids() == old_uids
        await w.change(the_set("v2", **sizes))
        await w.until(w.ended, "coherent")
        assert w.images() == {"x:v2"} and w.gangs() == ["F2 P0", "P1", "F2 P2", "P3"]


async def test_a_deleted_map_is_restored_without_touching_pods():
    async with world(the_set(**FPD), 12) as w:
        await w.change(the_set("v1", **FPD))
        await w.until(w.ended, "updated")
        gangs, old_uids = w.gangs(), w.uids()
        await w.api.delete(("podgangmaps", "ns", "s-0"))
        await w.until(lambda: w.gangs() == gangs, "restored")
        assert w.uids() == old_uids
        await w.change(the_set("v2", **FPD))
        await w.soon(lambda: "x:v2" in w.images())
        await w.api.delete(("podgangmaps", "ns", "s-0"))
        await w.until(w.ended, "updated")
        assert w.images() == {"x:v2"} and w.serving(12)


async def test_an_operator_continues_after_a_restart_at_any_time():
    async with world(the_set(**FPD), 12) as w:
        await w.change(the_set("v1", **FPD))
        for _ in range(8):
            before = len(w.api.writes)
            await w.soon(lambda before=before: len(w.api.writes) > before + 8 or bool(w.ended()))
            await w.stop()
            await w.start()
        await w.until(w.ended, "updated")
        assert w.images() == {"x:v1"} and w.mixed() == [] and w.serving(12)
        assert w.gangs() == ["F2 P0 D0", "P1", "F3 P2 D1", "P3", "D2"]


async def test_an_update_with_a_single_anchor_completes():
    async with world(the_set(**FPD), 12) as w:
        body = the_set("v1", **FPD)
        body["spec"]["updateStrategy"]["coherent"] = {"gangLayout": "SingleAnchor"}
        await w.change(body)
        await w.until(w.ended, "updated")
        assert sorted(w.gangs()) == sorted(FIRST) and w.images() == {"x:v1"} and w.mixed() == []


async def test_a_terminated_replica_is_recreated_in_the_gangs_of_its_map():
    sizes = {"F": (2, 2), "P": (2, 1)}
    body = the_set(**sizes)
    body["spec"]["template"]["terminationDelay"] = "1s"
    async with world(body, 4) as w:
        gangs, old_uids = w.gangs(), w.uids()
        lost = w.pods("s-0-f")[0]["metadata"]["name"]
        w.api.held_back = True
        await w.api.delete(("pods", "ns", lost))
        await w.until(lambda: not w.uids() & old_uids, "terminated")
        w.api.held_back = False
        await w.until(lambda: w.serving(4), "recovered")
        assert w.gangs() == gangs
        bound = first_bound(w, old_uids)
        assert bound["s-0-p-1-pw"] > max(bound["s-0-f"], bound["s-0-p-0-pw"])


async def test_remaining_pods_of_a_terminated_replica_do_not_count():
    body = the_set(F=(2, 2), P=(2, 1))
    body["spec"]["template"]["terminationDelay"] = "1s"
    async with world(body, 4) as w:
        w.api.collects_after = 0.5
        old_uids = w.uids()
        container = {"name": "main", "started": False, "lastState": {"terminated": {"exitCode": 1}}}
        failed = {"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [container]}
        await w.api.patch(("pods", "ns", w.pods("s-0-f")[0]["metadata"]["name"]), {"status": failed}, "merge", True)
        await w.until(lambda: not w.uids() & old_uids and w.serving(4), "terminated and recovered")
        bound = first_bound(w, old_uids)
        assert bound["s-0-p-1-pw"] > max(bound["s-0-f"], bound["s-0-p-0-pw"])


def first_bound(w: World, old_uids: set[str]) -> dict[str, int]:
    """Return, by clique, the position in the history at which its first pod was bound. Pods with a UID in `old_uids`
    are ignored."""
    first_positions: dict[str, int] = {}
    for position, (plural, _, item) in enumerate(w.api.history):
        if plural == "pods" and item["spec"].get("nodeName") and item["metadata"]["uid"] not in old_uids:
            first_positions.setdefault(item["metadata"]["labels"][labels.PODCLIQUE], position)
    return first_positions


async def test_pods_start_after_the_parents_in_their_own_gang():
    sizes = {"F": (2, 1), "P": (2, 1)}
    body = the_set(**sizes)
    body["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeInOrder"
    async with world(body, 4) as w:
        changed = the_set({"P": "v1"}, **sizes)
        changed["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeInOrder"
        await w.change(changed)
        await w.until(w.ended, "updated")
        assert w.gangs() == ["F2", "P0", "P1"]
        assert not any(pod["spec"].get("initContainers") for pod in w.pods("pw"))


async def test_the_set_can_be_scaled_and_deleted():
    sizes = {"F": (2, 1), "P": (2, 1)}
    async with world(the_set(replicas=2, **sizes), 8) as w:
        await w.scale("podcliquesets", "s", 3)
        await w.until(lambda: w.serving(12) and len(w.api.all("podgangmaps")) == 3, "scaled out")
        await w.scale("podcliquesets", "s", 1)
        await w.until(lambda: w.serving(4) and len(w.api.all("podgangmaps")) == 1, "scaled in")
        await w.api.delete(("podcliquesets", "ns", "s"))
        await w.until(lambda: not w.api.all("podgangmaps") and not w.pods() and not w.api.all("podgangs"), "deleted")
