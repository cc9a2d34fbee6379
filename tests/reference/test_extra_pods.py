"""Tests of extra pods that give way to the minimum of another gang, unless other pods were placed because of them."""

from __future__ import annotations

import pytest

from reference_impl.scheduler import cycle
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.gang import Gang, Group
from tests.reference.examples import gpu_pod, node

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
OF_W = {"labelSelector": {"matchLabels": {"app": "w"}}}
SPREAD = {
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **OF_W}]
}
NEAR = {
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, **OF_W}]}}
}
PORT = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
DISK = {"volumes": [{"name": "data", "gcePersistentDisk": {"pdName": "data", "readOnly": True}}]}


def group(name: str, minimum: int, pods: int, app: str = "", **spec: object) -> Group:
    members = [gpu_pod(f"{name}-{i}", 1, **spec) for i in range(pods)]
    for pod in members:
        pod.metadata.labels = {"app": app or name}
    return Group(name, minimum, members)


def plan(nodes: dict[str, int], *gangs: Gang) -> dict[str, str]:
    """Return the node of each pod. `nodes` maps names to numbers of GPUs. Each node is a separate zone."""
    hosts = [node(name, gpus, labels={ZONE: f"z-{name}", HOST: name}) for name, gpus in nodes.items()]
    return {pod.metadata.name: name for pod, name in cycle.plan(gangs, Capacity(hosts, {})).bindings}


@pytest.mark.parametrize("spec", [PORT, DISK], ids=["host port", "volume"])
def test_an_extra_pod_with_a_port_or_a_volume_is_placed(spec: dict[str, object]) -> None:
    """The cycle tries whether the pod could give way, and then places it again."""
    bindings = plan({"a": 8, "b": 8}, Gang("g", [group("w", 1, 2, **spec)]), Gang("late", [group("l", 9, 9)]))
    assert bindings.keys() >= {"w-0", "w-1"}


def test_an_extra_pod_that_other_pods_are_spread_with_does_not_give_way() -> None:
    later_gang = Gang("late", [group("l", 1, 1, nodeSelector={HOST: "b"})])
    bindings = plan({"a": 8, "b": 1}, Gang("g", [group("w", 2, 3, **SPREAD)]), later_gang)
    assert sorted(bindings.values()) == ["a", "a", "b"] and "l-0" not in bindings


def test_an_extra_pod_that_another_pod_is_near_to_does_not_give_way() -> None:
    later_gang = Gang("late", [group("l", 1, 1, nodeSelector={HOST: "b"})])
    bindings = plan({"a": 3, "b": 2}, Gang("g", [group("w", 1, 2), group("f", 1, 2, **NEAR)]), later_gang)
    near = {name for pod, name in bindings.items() if pod.startswith("f")}
    assert near <= {name for pod, name in bindings.items() if pod.startswith("w")}
