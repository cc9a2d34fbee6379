"""Tests of the creation of pods above the minimum, of the required children, and of the pods that are recreated."""

from __future__ import annotations

import pytest

from reference_impl.api.models import PodGang
from reference_impl.api.pods import Pod
from reference_impl.plan.workload_api import standing
from reference_impl.plan.workload_api.mode import Extras, Mode, Replacements
from reference_impl.plan.workload_api.standing import Standing
from tests.reference.workload_api.builders import Objects, bound, created, disaggregated, gang, group, planned, pod

MODE = Mode()
INSIDE = Mode(extras=Extras.INSIDE)
TOGETHER = Mode(replacements=Replacements.TOGETHER)
WAITING, PLACED, BROKEN = Standing(False, False), Standing(True, False), Standing(True, True)


def pair(*, placed: bool = False) -> PodGang:
    return gang(group("p", 2), group("d", 1), placed=placed)


def pods(p: int, d: int) -> list[Pod]:
    return [pod("p", node="n") for _ in range(p)] + [pod("d", node="n") for _ in range(d)]


@pytest.mark.parametrize(
    ("placed_once", "p", "d", "expected"),
    [
        (False, 0, 0, WAITING),
        (False, 2, 0, WAITING),
        (False, 1, 1, WAITING),
        (False, 2, 1, PLACED),
        (True, 2, 1, PLACED),
        (True, 5, 3, PLACED),
        (True, 1, 1, BROKEN),
        (True, 2, 0, BROKEN),
        (True, 0, 1, BROKEN),
        (True, 0, 0, WAITING),  # the gang has lost all its pods, and is placed as a whole again
    ],
)
def test_the_state_of_a_gang_is_derived(placed_once: bool, p: int, d: int, expected: Standing):
    assert planned(pair(placed=placed_once), pods(p, d)).now == expected


def test_pods_that_do_not_run_or_belong_to_other_gangs_do_not_count():
    terminating = pod("d", node="n")
    terminating.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    ignored_pods = [pod("d"), terminating, pod("d", node="n", phase="Failed"), pod("d", node="n", gang="dis-1")]
    assert planned(pair(), [*pods(2, 0), *ignored_pods]).now == WAITING


# -- extras (WL37-M06 to WL37-M11) -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "mode", "existing", "limit"),
    [
        (WAITING, MODE, 0, 2),
        (WAITING, MODE, 1, 2),
        (WAITING, MODE, 4, 4),  # pods that are already bound are not taken away
        (PLACED, MODE, 2, None),
        (BROKEN, MODE, 1, None),
        (WAITING, INSIDE, 0, None),
    ],
)
def test_pods_above_the_minimum_are_created_when_the_gang_is_placed(
    now: Standing, mode: Mode, existing: int, limit: int | None
):
    assert standing.max_pods(now, 2, pods(existing, 0), mode) == limit


# -- lost pods (WL37-B30, WL37-B41) ------------------------------------------------------------------------------------


def required(pod_gang: PodGang, running: list[Pod], mode: Mode = MODE) -> list[int]:
    """Return `minGroupCount` of the root and of the nodes below it."""
    changes = planned(pod_gang, running, mode=mode).difference.changes
    policies = [c.body["spec"]["schedulingPolicy"] for c in changes if c.kind == "CompositePodGroup"]
    return [policy["gang"]["minGroupCount"] for policy in policies]


def test_all_children_are_required_until_a_placed_gang_loses_pods():
    pod_gang = disaggregated()
    groups = planned(pod_gang).groups
    assert required(pod_gang, []) == [3, 2, 2]
    assert pod_gang.status is None
    placed = disaggregated()
    placed.status = gang(placed=True).status
    all_pods = bound(placed, dict(groups))
    assert required(placed, all_pods) == [3, 2, 2]
    assert required(placed, all_pods[1:]) == [1, 1, 1]
    assert required(placed, all_pods[1:], TOGETHER) == [3, 2, 2]
    assert required(placed, []) == [3, 2, 2]
    assert required(pod_gang, all_pods[1:]) == [3, 2, 2]  # not placed yet, so only some pods are bound


def test_the_workload_shows_the_intended_gang():
    pod_gang = pair(placed=True)
    changes = planned(pod_gang, pods(1, 1)).difference.changes
    [root] = next(c for c in changes if c.kind == "Workload").body["spec"]["compositePodGroupTemplates"]
    assert root["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}


def test_the_root_is_recreated_when_pods_are_lost_and_when_they_are_restored():
    pod_gang = pair(placed=True)
    groups = dict(planned(pod_gang).groups)
    all_pods = bound(pod_gang, groups)
    objects: Objects = created(pod_gang)
    [lowered] = planned(pod_gang, all_pods[1:], objects).difference.changes
    assert (lowered.verb, lowered.kind) == ("replace", "CompositePodGroup")
    objects["CompositePodGroup", lowered.name].spec |= lowered.body["spec"]
    assert planned(pod_gang, all_pods[1:], objects).in_place
    [raised] = planned(pod_gang, all_pods, objects).difference.changes
    assert raised.name == lowered.name and raised.body["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}


# -- pods of earlier times (WL-H19, WL37-V18) --------------------------------------------------------------------------


def test_pods_outside_a_group_reduce_the_minimum_of_the_group():
    pod_gang = gang(group("p", 3))
    [group_name] = planned(pod_gang).groups.values()
    counts = {
        tuple(sorted(groups)): standing.min_counts(
            pod_gang, {"p": 3}, {"p": group_name}, [pod("p", node="n", pod_group=g) for g in groups]
        )
        for groups in ([], [""], ["", "old"], [group_name, group_name, group_name], ["", "", "", ""])
    }
    assert [counts[key]["p"] for key in counts] == [3, 2, 1, 3, 1]


def test_waiting_pods_in_another_group_are_recreated():
    waiting = {
        "mine": pod("p", pod_group="g"),
        "other": pod("p", pod_group="old"),
        "other gated": pod("p", pod_group="old", gated=True),
        "none gated": pod("p", gated=True),
        "none": pod("p"),
        "bound": pod("p", node="n", pod_group="old"),
        "bound without": pod("p", node="n"),
    }
    stale = standing.stale_pods(waiting.values(), "g")
    assert [name for name, candidate in waiting.items() if any(candidate is other for other in stale)] == [
        "other",
        "other gated",
        "none gated",
    ]
