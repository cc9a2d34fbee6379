"""Tests of gangs whose pods need devices: a gang is placed whole with its devices, or not at all."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.reference.devices.examples import (
    Cluster,
    allocated,
    claim,
    device_slice,
    gang,
    owners,
    request,
    with_own_claim,
    with_shared_claim,
)
from tests.reference.filters.scenes import node, pod

A, B = node("a"), node("b")
TWO_EACH = [device_slice("a", "a0", "a1"), device_slice("b", "b0", "b1")]


def pods_with_claims(count, name="p", **fields):
    return [with_own_claim(f"{name}{i}", **fields) for i in range(count)]


def test_a_gang_gets_one_device_for_each_pod():
    pods = pods_with_claims(4)
    cluster = Cluster([A, B], TWO_EACH, owners(pods))
    devices = cluster.devices(cluster.plan(gang("g", pods)))
    assert sorted(chain(*devices.values())) == ["a/a0", "a/a1", "b/b0", "b/b1"]


def test_a_gang_that_lacks_devices_is_not_placed():
    pods = pods_with_claims(6)
    plan = Cluster([A, B], TWO_EACH, owners(pods)).plan(gang("g", pods))
    assert plan.bindings == []
    reason = str(plan.waiting["g"])
    assert "only 4 of 6 pods of g-0" in reason and "DynamicResources: cannot allocate all claims" in reason


def test_a_gang_that_is_not_placed_holds_no_device():
    large, small = pods_with_claims(6, "l"), pods_with_claims(4, "s")
    cluster = Cluster([A, B], TWO_EACH, owners(large + small))
    plan = cluster.plan(gang("large", large), gang("small", small))
    assert {bound.metadata.name for bound, _ in plan.bindings} == {"s0", "s1", "s2", "s3"}
    assert len(cluster.devices(plan)) == 4


def test_extra_pods_get_the_remaining_devices():
    pods = pods_with_claims(6)
    plan = Cluster([A, B], TWO_EACH, owners(pods)).plan(gang("g", pods, minimum=3))
    assert len(plan.bindings) == 4
    assert (
        all("cannot allocate all claims" in reason for reason in plan.extra_pod_reasons.values())
        and len(plan.extra_pod_reasons) == 2
    )


def test_allocated_devices_are_not_given_twice():
    holder = with_own_claim("holder", at="a")
    pods = pods_with_claims(3)
    allocated_claims = claim("holder", owner="holder", status=allocated("a", "a0", users=("holder",)))
    cluster = Cluster([A, B], TWO_EACH, [allocated_claims, *owners(pods)], (holder,))
    devices = cluster.devices(cluster.plan(gang("g", pods)))
    assert sorted(chain(*devices.values())) == ["a/a1", "b/b0", "b/b1"]


def test_the_devices_of_placed_pods_are_chosen_again_if_a_later_pod_needs_them():
    """Any device suits the first pod, and only the first device suits the second one."""
    selector = [{"cel": {"expression": 'device.attributes["gpu.example.com"].large'}}]
    cards = [
        {"name": "large", "attributes": {"large": {"bool": True}}},
        {"name": "small", "attributes": {"large": {"bool": False}}},
    ]
    any_pods, large_pods = pods_with_claims(1, "any"), pods_with_claims(1, "large")
    claims = [*owners(any_pods), *owners(large_pods, request(selectors=selector))]
    cluster = Cluster([A], [device_slice("a", *cards)], claims)
    devices = cluster.devices(cluster.plan(gang("g", any_pods, large_pods)))
    assert devices == {"any0": ["a/small"], "large0": ["a/large"]}


def test_the_pods_of_a_shared_claim_share_a_node():
    pods = [with_shared_claim(f"p{i}", "shared", containers=_cpus(3)) for i in range(2)]
    cluster = Cluster([A, B], TWO_EACH, [claim("shared", request(2))])
    plan = cluster.plan(gang("g", pods))
    assert len({name for _, name in plan.bindings}) == 1
    assert [len(devices) for devices in cluster.devices(plan).values()] == [2]


def test_a_shared_claim_whose_pods_do_not_fit_one_node_is_not_placed():
    """Each node has 8 CPUs."""
    pods = [with_shared_claim(f"p{i}", "shared", containers=_cpus(3)) for i in range(3)]
    plan = Cluster([A, B], TWO_EACH, [claim("shared")]).plan(gang("g", pods))
    assert plan.bindings == [] and "resourceclaim not available on the node" in str(plan.waiting["g"])


def test_an_allocated_shared_claim_determines_the_node():
    pods = [with_shared_claim("p", "shared")]
    shared = claim("shared", status=allocated("b", "b0", users=("other",)))
    plan = Cluster([A, B], TWO_EACH, [shared], (with_shared_claim("other", "shared", at="b"),)).plan(gang("g", pods))
    assert [name for _, name in plan.bindings] == ["b"]


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ([], "resourceclaim p0 does not exist"),
        ([claim("p0", owner="another")], "resourceclaim p0 was not created for the pod"),
        ([claim("p0", {"name": "r", "exactly": {"deviceClassName": "none"}}, owner="p0")], "device class none"),
    ],
)
def test_a_pod_waits_for_its_claim(claims, reason):
    plan = Cluster([A], TWO_EACH[:1], claims).plan(gang("g", pods_with_claims(1)))
    assert plan.bindings == [] and reason in str(plan.waiting["g"])


def test_preemption_frees_the_devices_of_its_victims():
    victims = [with_own_claim(f"v{i}", at="a", priority=0) for i in range(2)]
    pods = [with_own_claim("p0", priority=10)]
    allocated_claims = [
        claim(f"v{i}", owner=f"v{i}", status=allocated("a", f"a{i}", users=(f"v{i}",))) for i in range(2)
    ]
    cluster = Cluster([A], TWO_EACH[:1], [*allocated_claims, *owners(pods)], tuple(victims))
    plan = cluster.plan(gang("g", pods, priority=10), evictable=[(victim, "a") for victim in victims])
    assert len(plan.evictions) == 1 and plan.bindings == []
    assert list(plan.nominated) == ["g"]


def test_pods_without_claims_are_placed_as_before():
    plan = Cluster([A, B], TWO_EACH, []).plan(gang("g", [pod("p")]))
    assert len(plan.bindings) == 1


def test_partitions_share_the_counters_of_their_card():
    """A card with seven slices: three of the large partitions do not fit, a large and small ones do."""
    parts = [
        {"name": f"p{size}-{i}", "attributes": {"size": {"int": size}}, "consumesCounters": _slices(size)}
        for size in (1, 3)
        for i in range(7)
    ]
    slices = [
        device_slice("a", counters={"slices": 7}, pool={"resourceSliceCount": 2}),
        device_slice("a", *parts, pool={"resourceSliceCount": 2}),
    ]
    large = [{"cel": {"expression": 'device.attributes["gpu.example.com"].size == 3'}}]
    pods = pods_with_claims(3)
    assert Cluster([A], slices, owners(pods, request(selectors=large))).plan(gang("g", pods)).bindings == []
    claims = [*owners(pods[:2], request(selectors=large)), *owners(pods[2:])]
    assert len(Cluster([A], slices, claims).plan(gang("g", pods)).bindings) == 3


def _cpus(count):
    return [{"name": "main", "resources": {"requests": {"cpu": str(count)}}}]


def _slices(count):
    return [{"counterSet": "card", "counters": {"slices": {"value": str(count)}}}]
