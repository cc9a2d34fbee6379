"""Tests of pods that are placed while nominated pods wait for their victims. A placement must not depend on nominated
pods, which may never be bound."""

from __future__ import annotations

import pytest

from reference_impl.scheduler import cycle, model
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.gang import Gang, Group
from tests.reference.examples import gpu_pod, node

GPU, ZONE, HOST = "nvidia.com/gpu", "topology.kubernetes.io/zone", "kubernetes.io/hostname"
OF_W = {"labelSelector": {"matchLabels": {"app": "w"}}}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeAffinityPolicy": "Ignore",
            **OF_W,
        }
    ]
}
NEAR = {
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE, **OF_W}]}}
}
VICTIM = gpu_pod("victim", 1)


def labelled(name: str, app: str, **spec: object) -> model.Pod:
    pod = gpu_pod(name, 1, **spec)
    pod.metadata.labels = {"app": app}
    return pod


def plan(minimum: int, *pods: model.Pod) -> cycle.Plan:
    """Plan these pods of one gang while the gang `high`, which has a higher priority, waits for its victim on node n1
    to terminate."""
    nodes = [
        node(name, gpus, labels={HOST: name, ZONE: zone})
        for name, gpus, zone in (("n0", 8, "z0"), ("n1", 1, "z1"), ("n2", 2, "z1"))
    ]
    high = Gang("high", [Group("p", 1, [labelled("high-0", "w", nodeSelector={HOST: "n1"})])], priority=10)
    capacity = Capacity(nodes, {"n1": {GPU: 1000}})
    result = cycle.plan(
        [high, Gang("low", [Group("p", minimum, list(pods))])], capacity, cycle.OtherPods([(VICTIM, "n1")])
    )
    assert [pod.metadata.name for pod, _ in result.nominated["high"]] == ["high-0"]
    return result


ONLY_N0 = {"nodeSelector": {HOST: "n0"}}
BECAUSE_OF_NOMINATED = {
    "spread": [labelled(f"low-{i}", "w", **SPREAD, **ONLY_N0) for i in range(2)],
    "affinity": [labelled("low-0", "other", **NEAR)],
}


@pytest.mark.parametrize("pods", BECAUSE_OF_NOMINATED.values(), ids=BECAUSE_OF_NOMINATED)
def test_a_gang_that_fits_only_because_of_nominated_pods_waits(pods: list[model.Pod]) -> None:
    result = plan(len(pods), *pods)
    assert result.bindings == [] and result.waiting["low"].kind == "nominated"
    assert [eviction.pod.metadata.name for eviction in result.evictions] == ["victim"]


def test_an_extra_pod_that_fits_only_because_of_nominated_pods_waits() -> None:
    result = plan(1, *BECAUSE_OF_NOMINATED["spread"])
    assert [pod.metadata.name for pod, _ in result.bindings] == ["low-0"]


def test_a_gang_is_placed_where_it_does_not_need_nominated_pods() -> None:
    """On the fullest node, the affinity would be met by the nominated pod alone."""
    pods = [labelled("low-0", "w", **ONLY_N0), labelled("low-1", "other", **NEAR)]
    assert {pod.metadata.name: name for pod, name in plan(2, *pods).bindings} == {"low-0": "n0", "low-1": "n0"}
