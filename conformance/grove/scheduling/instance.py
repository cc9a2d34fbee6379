"""Instances of the scheduling problem and their outcomes (spec E.1).

Pods of a group are interchangeable: an outcome is a count for each group and node, and the running pods that had to go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Resources = Mapping[str, int]
"""Resource → whole units. A node that does not name one has plenty of it."""

HOST = "host"
"""The label key of the narrowest domain. Each node has it; its value is the name unless the instance says else."""

Spread = Mapping[str, int]
"""Node → pods of one group on it; never 0."""

Placed = Mapping[str, Mapping[str, Spread]]
"""Gang → group → node → pods that were bound there."""


@dataclass(frozen=True)
class Node:
    """`capacity` is what all pods on it may ask for together, those that run already included."""

    name: str
    capacity: Resources
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...] = ()
    schedulable: bool = True
    """False for a node that is cordoned or not Ready."""


@dataclass(frozen=True)
class Group:
    """A pod group: at least `minimum`, at best `desired` pods, each of which asks for `asks`. Where pods are gated or
    missing, the minimum may be out of reach."""

    name: str
    minimum: int
    desired: int
    asks: Resources
    required: str = ""
    preferred: str = ""
    demands: Mapping[str, Any] = field(default_factory=dict)
    """Of the pod spec: nodeSelector, tolerations, nodeAffinity (the required terms)."""
    gated: int | None = None
    """Pods beside those that are desired which have a scheduling gate of somebody else, and so count for nothing."""
    missing: int | None = None
    """Pods that the PodGang refers to and that do not exist."""


@dataclass(frozen=True)
class Scope:
    """A topology constraint over some groups of a gang: keys of node labels, empty for none."""

    groups: tuple[str, ...]
    required: str = ""
    preferred: str = ""


@dataclass(frozen=True)
class Gang:
    name: str
    groups: tuple[Group, ...]
    priority: int = 0
    base: str = ""
    required: str = ""
    preferred: str = ""
    configs: tuple[Scope, ...] = ()

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Constraints of all three levels, the widest first."""
        own = Scope(tuple(group.name for group in self.groups), self.required, self.preferred)
        of_groups = (Scope((group.name,), group.required, group.preferred) for group in self.groups)
        return tuple(scope for scope in (own, *self.configs, *of_groups) if scope.required or scope.preferred)

    def group(self, name: str) -> Group:
        return next(group for group in self.groups if group.name == name)


@dataclass(frozen=True)
class Running:
    """A pod that is bound before the instance begins; of a gang and its group, or of none."""

    name: str
    node: str
    asks: Resources
    priority: int = 0
    gang: str = ""
    group: str = ""
    state: Literal["running", "terminating", "finished"] = "running"

    @property
    def holds(self) -> bool:
        """Whether it takes room on its node (GS-S40)."""
        return self.state != "finished"

    @property
    def counts(self) -> bool:
        """Whether it counts as a pod of its gang."""
        return self.state == "running"


@dataclass(frozen=True)
class Outcome:
    """Where a scheduler came to rest: pods that it bound, and running pods that it evicted (by name)."""

    placed: Placed = field(default_factory=dict)
    evicted: frozenset[str] = frozenset()
    recreated: bool = False
    """Whether somebody has made evicted pods of gangs anew, so that they wait again."""

    def of(self, gang: str, group: str) -> Spread:
        return self.placed.get(gang, {}).get(group, {})


@dataclass(frozen=True)
class Change:
    """What happens to an instance that has come to rest."""

    nodes: tuple[Node, ...] = ()
    """New ones, or present ones in their new form."""
    deleted: tuple[str, ...] = ()
    """Gangs that are deleted, with their pods."""
    gangs: tuple[Gang, ...] = ()


@dataclass(frozen=True)
class Instance:
    nodes: tuple[Node, ...]
    gangs: tuple[Gang, ...]
    running: tuple[Running, ...] = ()
    name: str = ""

    def gang(self, name: str) -> Gang:
        return next(gang for gang in self.gangs if gang.name == name)

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def priority(self, pod: Running) -> int:
        """A pod of a gang has the gang's priority."""
        return next((gang.priority for gang in self.gangs if gang.name == pod.gang), pod.priority)

    def after(self, outcome: Outcome, change: Change) -> Instance:
        """The instance that begins where `outcome` has ended and `change` has happened."""
        fresh = {node.name: node for node in change.nodes}
        nodes = [fresh.pop(node.name, node) for node in self.nodes] + list(fresh.values())
        running = [pod for pod in self.running if pod.name not in outcome.evicted] + list(bound(self, outcome))
        return replace(
            self,
            nodes=tuple(nodes),
            gangs=tuple(gang for gang in self.gangs if gang.name not in change.deleted) + change.gangs,
            running=tuple(pod for pod in running if pod.gang not in change.deleted),
        )


def bound(instance: Instance, outcome: Outcome) -> Iterator[Running]:
    """The pods that an outcome has bound, with names of their own."""
    for gang in instance.gangs:
        for group in gang.groups:
            number = 0
            for node, count in outcome.of(gang.name, group.name).items():
                for _ in range(count):
                    name = f"{gang.name}-{group.name}-new-{number}"
                    yield Running(name, node, group.asks, gang.priority, gang.name, group.name)
                    number += 1


def survivors(instance: Instance, outcome: Outcome, gang: str, group: str) -> Counter[str]:
    """Node → pods of a group that were bound before, and still are."""
    return Counter(
        pod.node
        for pod in instance.running
        if (pod.gang, pod.group) == (gang, group) and pod.counts and pod.name not in outcome.evicted
    )


def members(instance: Instance, outcome: Outcome, gang: str, group: str) -> Counter[str]:
    """Node → pods of a group at the end."""
    return survivors(instance, outcome, gang, group) + Counter(outcome.of(gang, group))


def admitted(instance: Instance, outcome: Outcome, gang: Gang) -> bool:
    """Whether each group has its minimum at the end. A gang without any minimum always is (GS-45)."""
    return all(members(instance, outcome, gang.name, group.name).total() >= group.minimum for group in gang.groups)


def free(instance: Instance, outcome: Outcome) -> dict[str, dict[str, int]]:
    """Node → what is left of its capacity; negative where it is exceeded."""
    left = {node.name: dict(node.capacity) for node in instance.nodes}
    for pod in (*instance.running, *bound(instance, outcome)):
        if pod.holds and pod.name not in outcome.evicted and pod.node in left:
            for resource, amount in pod.asks.items():
                if resource in left[pod.node]:
                    left[pod.node][resource] -= amount
    return left
