"""Tests of the reason why a gang waits: its group, resource and domain."""

from __future__ import annotations

import pytest

from reference_impl.scheduler import cycle
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.gang import Gang, Group, scopes
from tests.reference.examples import gpu_pod, node

GPU, RACK = "nvidia.com/gpu", "example.com/rack"


def gang(name, *groups, rack=False, **fields):
    """Return a gang. `groups` are (pods, GPUs per pod), and the minimum includes all pods."""
    gang_groups = [
        Group(f"{name}-{g}", pods, [gpu_pod(f"{name}-{g}-{i}", gpus) for i in range(pods)])
        for g, (pods, gpus) in enumerate(groups)
    ]
    names = [group.name for group in gang_groups]
    return Gang(name, gang_groups, scopes(names, (names, RACK if rack else "", "")), **fields)


def racked(**gpus_of):
    """Return nodes, whose names start with the name of their rack and an underscore."""
    return [node(name, gpus, labels={RACK: name.split("_")[0]}) for name, gpus in gpus_of.items()]


def shortfall_of(item, nodes, **other_pods):
    return cycle.plan([item], Capacity(nodes, {}), cycle.OtherPods(**other_pods)).waiting[item.name]


def test_a_scarce_resource_is_reported():
    shortfall = shortfall_of(gang("a", (3, 4)), [node("n", 8)])
    assert (shortfall.kind, shortfall.group, shortfall.resource, shortfall.needed, shortfall.possible) == (
        "resource",
        "a-0",
        GPU,
        3,
        2,
    )
    assert "2 of 3 pods of a-0" in str(shortfall) and GPU in str(shortfall)


def test_a_group_without_eligible_nodes_is_reported():
    shortfall = shortfall_of(gang("a", (1, 1)), [node("n", 8, unschedulable=True)])
    assert shortfall.kind == "nodes" and "a-0" in str(shortfall)


def test_the_best_domain_is_reported():
    shortfall = shortfall_of(gang("a", (3, 1), rack=True), racked(r1_a=1, r1_b=1, r2_a=1))
    assert (shortfall.kind, shortfall.key, shortfall.domain, shortfall.possible) == ("domain", RACK, "r1", 2)
    assert RACK in str(shortfall) and "r1" in str(shortfall) and GPU in str(shortfall)


def test_a_missing_node_label_is_reported():
    shortfall = shortfall_of(gang("a", (1, 1), rack=True), [node("n", 8)])
    assert shortfall.kind == "domain" and shortfall.domain == "" and RACK in str(shortfall)


def test_groups_that_fit_only_separately_are_reported():
    shortfall = shortfall_of(gang("a", (2, 2), (2, 2)), [node("n", 6)])
    assert shortfall.kind == "together" and GPU in str(shortfall)


def test_bound_pods_in_two_domains_are_reported():
    item = gang("a", (1, 1), rack=True)
    item.groups[0].minimum = 3
    item.groups[0].members = [(gpu_pod("x", 1), "r1_a"), (gpu_pod("y", 1), "r2_a")]
    shortfall = shortfall_of(item, racked(r1_a=4, r2_a=4))
    assert shortfall.kind == "torn" and RACK in str(shortfall)


def test_a_waiting_base_gang_is_reported():
    base, scaled = gang("base", (9, 1)), gang("scaled", (1, 1), base="base")
    plan = cycle.plan([base, scaled], Capacity([node("n", 8)], {}))
    assert plan.waiting["scaled"].kind == "base" and "base" in str(plan.waiting["scaled"])


def test_equivalent_gangs_get_the_same_reason_with_their_own_groups():
    plan = cycle.plan([gang("a", (9, 1)), gang("b", (9, 1))], Capacity([node("n", 8)], {}))
    assert plan.waiting["a"].group == "a-0" and plan.waiting["b"].group == "b-0"


@pytest.mark.parametrize("claimed", [True, False])
def test_capacity_is_reserved_only_for_a_gang_that_pods_were_evicted_for(claimed):
    big, small = gang("big", (2, 4), priority=5), gang("small", (1, 4))
    terminating = [(gpu_pod("old", 4), "n")]
    capacity = Capacity([node("n", 8)], {"n": {GPU: 4000}})
    other_pods = cycle.OtherPods(terminating=terminating, preemptors=["big"] if claimed else [])
    plan = cycle.plan([big, small], capacity, other_pods)
    assert plan.waiting["big"].kind == "leaving" and plan.evictions == []
    assert [pod.metadata.name for pod, _ in plan.bindings] == ([] if claimed else ["small-0-0"])
    assert list(plan.nominated) == (["big"] if claimed else [])


def test_surplus_capacity_of_victims_is_not_used_before_they_have_terminated():
    victim = Gang("victim", [Group("victim-0", 2, [], [(gpu_pod(f"v{i}", 4), "n") for i in range(2)])])
    high, low = gang("high", (1, 4), priority=5), gang("low", (1, 4))
    plan = cycle.plan([victim, high, low], Capacity([node("n", 8)], {"n": {GPU: 8000}}))
    assert {eviction.pod.metadata.name for eviction in plan.evictions} == {"v0", "v1"}
    assert all(eviction.ends_gang and eviction.preemptor == "high" for eviction in plan.evictions)
    assert plan.bindings == [] and list(plan.nominated) == ["high"]


def test_a_gang_without_preemption_evicts_no_pods():
    existing = [(gpu_pod("old", 8), "n")]
    high = gang("high", (1, 4), priority=5, preempts=False)
    plan = cycle.plan([high], Capacity([node("n", 8)], {"n": {GPU: 8000}}), cycle.OtherPods(evictable=existing))
    assert plan.evictions == [] and plan.waiting["high"].kind == "resource"
