"""Scenes generated from a seed, with many partly occupied nodes of different kinds and gangs that all differ.

A scene is plain data: the scheduler's models are built from it, and the checks of `inversions` read it directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from reference_impl.scheduler import cycle, gang, model
from reference_impl.scheduler.capacity import Capacity

GPU, HOST, RACK, BLOCK = "nvidia.com/gpu", "kubernetes.io/hostname", "example.com/rack", "example.com/block"
Amounts = dict[str, int]
MACHINES: list[Amounts] = [
    {GPU: 8, "cpu": 220, "memory": 1984},
    {GPU: 4, "cpu": 140, "memory": 816},
    {GPU: 2, "cpu": 64, "memory": 512},
    {GPU: 0, "cpu": 64, "memory": 256},
]
PODS_ON_A_NODE, NODES_OF_A_RACK, RACKS_OF_A_BLOCK = 110, 10, 4


@dataclass
class Host:
    """A node: its labels, which name its domains, and the capacity that pods outside the gangs leave free on it."""

    name: str
    labels: dict[str, str]
    free: Amounts


@dataclass
class Group:
    """A group: its minimum and number of pods, the requests of each pod, and the nodes of its bound pods."""

    name: str
    minimum: int
    pods: int
    requests: Amounts
    required: str = ""
    bound: list[str] = field(default_factory=list)


@dataclass
class Gang:
    """A gang. `required` is the topology key whose domain all its groups must share."""

    name: str
    priority: int
    groups: list[Group]
    required: str = ""


@dataclass
class Scene:
    """Nodes and gangs. Running gangs have bound pods, and waiting gangs do not."""

    hosts: list[Host]
    gangs: list[Gang]


def scene(seed: int, nodes: int = 100, pods: int = 400) -> Scene:
    """Generate a scene: gangs with at least `pods` waiting pods in total, and up to one running gang for every ten
    nodes."""
    random = Random(seed)
    hosts = [_host(random, index) for index in range(nodes)]
    gangs: list[Gang] = []
    free = {host.name: dict(host.free) for host in hosts}
    for index in range(nodes // 10):
        running = _gang(random, f"running-{index}", random.choice((0, 5, 10, 10)))
        running.required = ""
        for group in running.groups:
            group.required = ""
            for _ in range(group.pods):
                for host in random.sample(hosts, min(12, nodes)):
                    if fits(group.requests, free[host.name]):
                        take(group.requests, free[host.name])
                        group.bound.append(host.name)
                        break
            group.pods = len(group.bound)
            group.minimum = min(group.minimum, group.pods)
        if any(group.bound for group in running.groups):
            gangs.append(running)
    waiting = 0
    while waiting < pods:
        gangs.append(_gang(random, f"waiting-{len(gangs)}", random.choice((0, 0, 5, 10))))
        waiting += sum(group.pods for group in gangs[-1].groups)
    return Scene(hosts, gangs)


def _host(random: Random, index: int) -> Host:
    machine = random.choices(MACHINES, (4, 4, 2, 1))[0]
    share = random.choice((0.0, 0.2, 0.4, 0.6))
    rack = index // NODES_OF_A_RACK
    free = {name: amount - int(amount * share * random.uniform(0.6, 1.2)) for name, amount in machine.items()}
    labels = {HOST: f"node-{index}", RACK: f"rack-{rack}", BLOCK: f"block-{rack // RACKS_OF_A_BLOCK}"}
    return Host(f"node-{index}", labels, free | {"pods": PODS_ON_A_NODE})


def _gang(random: Random, name: str, priority: int) -> Gang:
    groups = []
    for index in range(random.choice((1, 2, 2, 3, 3))):
        pods = random.choice((1, 2, 2, 3, 3, 4, 6, 8, 16))
        gpus = random.choice((0, 1, 1, 1, 2, 2, 4))
        requests = {GPU: gpus, "cpu": random.randint(1, 12 + 8 * gpus), "memory": random.randint(4, 32 + 60 * gpus)}
        requests = {key: amount for key, amount in requests.items() if amount} | {"pods": 1}
        minimum = pods if random.random() < 0.7 else random.randint(1, pods)
        required = random.choice(("", "", "", "", HOST, RACK))
        groups.append(Group(f"{name}-{index}", minimum, pods, requests, required))
    return Gang(name, priority, groups, random.choice(("", "", "", RACK, BLOCK)))


def fits(requests: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Return whether a pod fits."""
    return all(free.get(name, 0) >= amount for name, amount in requests.items())


def take(requests: Mapping[str, int], free: Amounts, count: int = 1) -> None:
    """Subtract the requests of `count` pods from the free capacity."""
    for name, amount in requests.items():
        free[name] = free.get(name, 0) - amount * count


def plan(generated: Scene) -> cycle.Plan:
    """Run one cycle of the reference's scheduler on a scene."""
    gangs, capacity = models(generated)
    return cycle.plan(gangs, capacity)


def models(generated: Scene) -> tuple[list[gang.Gang], Capacity]:
    """Return the scheduler's models of a scene."""
    used: dict[str, model.Resources] = {}
    gangs = [_model(item, used) for item in generated.gangs]
    return gangs, Capacity([_node(host) for host in generated.hosts], used)


def _node(host: Host) -> model.Node:
    status = {
        "allocatable": {name: str(amount) for name, amount in host.free.items()},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return msgspec.convert({"metadata": {"name": host.name, "labels": host.labels}, "status": status}, model.Node)


def _model(item: Gang, used: dict[str, model.Resources]) -> gang.Gang:
    groups = []
    for group in item.groups:
        pods = [_pod(f"{group.name}-{index}", group, item.priority) for index in range(group.pods)]
        members = list(zip(pods, group.bound, strict=False))
        for pod, node in members:
            take(pod.requests, used.setdefault(node, {}), -1)
        groups.append(gang.Group(group.name, group.minimum, pods[len(members) :], members))
    names = [group.name for group in groups]
    levels = [(names, item.required, ""), *(([group.name], group.required, "") for group in item.groups)]
    return gang.Gang(item.name, groups, gang.scopes(names, *levels), item.priority)


def _pod(name: str, group: Group, priority: int) -> model.Pod:
    requests = {key: str(amount) for key, amount in group.requests.items() if key != "pods"}
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": requests}}], "priority": priority}
    return msgspec.convert({"metadata": {"name": name, "uid": name, "namespace": "ns"}, "spec": spec}, model.Pod)
