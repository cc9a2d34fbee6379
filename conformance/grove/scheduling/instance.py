"""Instances of the scheduling problem and their outcomes (spec E.1).

Pods of a group are interchangeable: an outcome is the number of pods of each group on each node, and the set of evicted
running pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from conformance.grove.scheduling.scenario_format import Scope

Resources = Mapping[str, int]
"""Resource → whole units. A resource that a node does not list is unlimited on it."""

HOST = "host"
"""The label key of the narrowest domain. Every node has this label; its default value is the node's name."""

Spread = Mapping[str, int]
"""Node → number of a group's pods on it; never 0."""

Placed = Mapping[str, Mapping[str, Spread]]
"""Gang → group → node → number of pods bound there."""


@dataclass(frozen=True)
class Node:
    """A node. `capacity` is the limit for all pods on it, including pods that are already running."""

    name: str
    capacity: Resources
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...] = ()
    schedulable: bool = True
    """False for a node that is cordoned or not Ready."""


@dataclass(frozen=True)
class Group:
    """A pod group: at least `minimum` and at most `desired` pods, each of which requests the same resources. If pods
    are gated or missing, the minimum may be unreachable."""

    name: str
    minimum: int
    desired: int
    requests: Resources
    required: str = ""
    preferred: str = ""
    demands: Mapping[str, Any] = field(default_factory=dict)
    """The pod spec's demands on nodes (nodeSelector, tolerations, nodeAffinity, claim) and on other pods (hostPorts,
    apart, together, spread), and the part of the spec that requests the resources (requestedBy)."""
    gated: int | None = None
    """Number of pods, in addition to the desired ones, that have a foreign scheduling gate and therefore do not
    count."""
    missing: int | None = None
    """Number of pods that the PodGang references but that do not exist."""


@dataclass(frozen=True)
class Gang:
    """A gang with its pod groups, its priority and its topology constraints."""

    name: str
    groups: tuple[Group, ...]
    priority: int = 0
    base: str = ""
    required: str = ""
    preferred: str = ""
    configs: tuple[Scope, ...] = ()

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return the constraints of all three levels, widest first."""
        gang_scope = Scope(tuple(group.name for group in self.groups), self.required, self.preferred)
        group_scopes = (Scope((group.name,), group.required, group.preferred) for group in self.groups)
        return tuple(scope for scope in (gang_scope, *self.configs, *group_scopes) if scope.required or scope.preferred)

    def group(self, name: str) -> Group:
        """Return a group by name. Raises StopIteration if there is none."""
        return next(group for group in self.groups if group.name == name)


@dataclass(frozen=True)
class RunningPod:
    """A pod that is already bound at the start of the instance. It belongs to a group of a gang, or to no gang."""

    name: str
    node: str
    requests: Resources
    priority: int = 0
    gang: str = ""
    group: str = ""
    state: Literal["running", "terminating", "finished"] = "running"

    @property
    def occupies_node(self) -> bool:
        """Return whether the pod takes up capacity on its node (GS-S40)."""
        return self.state != "finished"

    @property
    def is_active(self) -> bool:
        """Return whether the pod counts as a pod of its gang."""
        return self.state == "running"


@dataclass(frozen=True)
class SchedulingOutcome:
    """The state in which a scheduler came to rest: the pods that it bound, and the names of the running pods that it
    evicted."""

    placed: Placed = field(default_factory=dict)
    evicted: frozenset[str] = frozenset()
    recreated: bool = False
    """Whether evicted pods of gangs were recreated, so that they are pending again."""
    moved: frozenset[str] = frozenset()
    """The evicted pods that were recreated and bound again, that is, pods that the scheduler has moved to make room."""

    @property
    def victims(self) -> frozenset[str]:
        """Return the evicted pods that were not moved."""
        return self.evicted - self.moved

    def of(self, gang: str, group: str) -> Spread:
        """Return the pods of a group that were bound, by node."""
        return self.placed.get(gang, {}).get(group, {})


@dataclass(frozen=True)
class InstanceChange:
    """A change that is made to an instance after it has come to rest."""

    nodes: tuple[Node, ...] = ()
    """New nodes, or existing nodes in their new form."""
    deleted: tuple[str, ...] = ()
    """Gangs that are deleted together with their pods."""
    gangs: tuple[Gang, ...] = ()


@dataclass(frozen=True)
class Instance:
    """A small scheduling problem: nodes, waiting gangs, running pods."""

    nodes: tuple[Node, ...]
    gangs: tuple[Gang, ...]
    running: tuple[RunningPod, ...] = ()
    name: str = ""

    def gang(self, name: str) -> Gang:
        """Return a gang by name."""
        return next(gang for gang in self.gangs if gang.name == name)

    def node(self, name: str) -> Node:
        """Return a node by name."""
        return next(node for node in self.nodes if node.name == name)

    @property
    def has_zero_minimum(self) -> bool:
        """Return whether a pod group has the minimum 0, whose meaning is open (GS-45)."""
        return any(group.minimum == 0 for gang in self.gangs for group in gang.groups)

    def priority(self, pod: RunningPod) -> int:
        """Return the priority of a running pod, which for a pod of a gang is the priority of the gang."""
        return next((gang.priority for gang in self.gangs if gang.name == pod.gang), pod.priority)

    def after(self, outcome: SchedulingOutcome, change: InstanceChange) -> Instance:
        """Return the instance that starts from the result of `outcome`, with `change` applied."""
        new_nodes = {node.name: node for node in change.nodes}
        nodes = [new_nodes.pop(node.name, node) for node in self.nodes] + list(new_nodes.values())
        running = [pod for pod in self.running if pod.name not in outcome.evicted] + list(bound_pods(self, outcome))
        return replace(
            self,
            nodes=tuple(nodes),
            gangs=tuple(gang for gang in self.gangs if gang.name not in change.deleted) + change.gangs,
            running=tuple(pod for pod in running if pod.gang not in change.deleted),
        )


def bound_pods(instance: Instance, outcome: SchedulingOutcome) -> Iterator[RunningPod]:
    """Yield the pods that an outcome bound, with generated names."""
    for gang in instance.gangs:
        for group in gang.groups:
            number = 0
            for node, count in outcome.of(gang.name, group.name).items():
                for _ in range(count):
                    name = f"{gang.name}-{group.name}-new-{number}"
                    yield RunningPod(name, node, group.requests, gang.priority, gang.name, group.name)
                    number += 1


def survivors(instance: Instance, outcome: SchedulingOutcome, gang: str, group: str) -> Counter[str]:
    """Return the number of a group's pods that were already bound and still are, by node."""
    return Counter(
        pod.node
        for pod in instance.running
        if (pod.gang, pod.group) == (gang, group) and pod.is_active and pod.name not in outcome.evicted
    )


def members(instance: Instance, outcome: SchedulingOutcome, gang: str, group: str) -> Counter[str]:
    """Return the number of a group's pods at the end, by node."""
    return survivors(instance, outcome, gang, group) + Counter(outcome.of(gang, group))


def is_admitted(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> bool:
    """Return whether each group has its minimum at the end. This always holds for a gang whose minimums are all zero
    (GS-45)."""
    return all(members(instance, outcome, gang.name, group.name).total() >= group.minimum for group in gang.groups)


def free_capacity(instance: Instance, outcome: SchedulingOutcome) -> dict[str, dict[str, int]]:
    """Return the free capacity of each node; negative if it is exceeded."""
    free_amounts = {node.name: dict(node.capacity) for node in instance.nodes}
    for pod in (*instance.running, *bound_pods(instance, outcome)):
        if pod.occupies_node and pod.name not in outcome.evicted and pod.node in free_amounts:
            for resource, amount in pod.requests.items():
                if resource in free_amounts[pod.node]:
                    free_amounts[pod.node][resource] -= amount
    return free_amounts
