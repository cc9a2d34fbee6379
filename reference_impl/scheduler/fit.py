"""Placing gangs, purely: from free room and waiting gangs to the pods that are bound where, and why others wait.

The rules (spec GS-20 to GS-26): the floors of all groups of a gang are placed together or not at all; no extra pod is
placed before every gang has had its chance for its floor; a gang that waits holds no room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from reference_impl.scheduler import eligibility
from reference_impl.scheduler.model import Node, Pod, Resources


@dataclass
class Group:
    """A pod group of a gang: its floor, how many of its pods are bound, and those that could be placed now."""

    name: str
    floor: int
    bound: int
    waiting: list[Pod]

    @property
    def lacking(self) -> int:
        """Pods that have to be placed for the floor."""
        return max(0, self.floor - self.bound)


@dataclass
class Gang:
    """A gang as the scheduler sees it."""

    name: str
    groups: list[Group]

    @property
    def floor_reached(self) -> bool:
        return all(group.lacking == 0 for group in self.groups)

    @property
    def incomplete(self) -> bool:
        """Pods that its floors need are not there yet, or still gated: there is nothing to decide."""
        return any(len(group.waiting) < group.lacking for group in self.groups)


@dataclass
class Plan:
    """What one round decides: pod → node to bind, and for each gang whose floor can't be placed the reason."""

    bindings: list[tuple[Pod, str]] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)


class Room:
    """Free resources of nodes, in thousandths, with a journal so that a try can be undone."""

    def __init__(self, nodes: Iterable[Node], used: dict[str, Resources]) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.metadata.name)
        self._free: dict[str, Resources] = {}
        for node in self.nodes:
            free = dict(node.allocatable)
            for name, amount in used.get(node.metadata.name, {}).items():
                free[name] = free.get(name, 0) - amount
            self._free[node.metadata.name] = free
        self._journal: list[tuple[str, Resources]] = []
        self._eligible: dict[bytes, list[Node]] = {}

    def eligible(self, pod: Pod) -> list[Node]:
        """The nodes that may take the pod, room apart."""
        nodes = self._eligible.get(pod.signature)
        if nodes is None:
            nodes = [node for node in self.nodes if eligibility.eligible(pod, node)]
            self._eligible[pod.signature] = nodes
        return nodes

    def take(self, pod: Pod) -> str | None:
        """Puts a pod on the eligible node that is left with the least of what it asks for most dearly; None where it
        fits nowhere."""
        best: tuple[int, str] | None = None
        scarce = _scarcest(pod.requests)
        for node in self.eligible(pod):
            name = node.metadata.name
            free = self._free[name]
            if all(free.get(resource, 0) >= amount for resource, amount in pod.requests.items()):
                rank = (free.get(scarce, 0), name)
                if best is None or rank < best:
                    best = rank
        if best is None:
            return None
        free = self._free[best[1]]
        for resource, amount in pod.requests.items():
            free[resource] -= amount
        self._journal.append((best[1], pod.requests))
        return best[1]

    def mark(self) -> int:
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Gives back everything taken since `mark`."""
        while len(self._journal) > mark:
            node, requests = self._journal.pop()
            for resource, amount in requests.items():
                self._free[node][resource] += amount

    def shortage(self, pod: Pod) -> str:
        """Why a pod fits nowhere, in words: the resource that is short on most of its nodes."""
        nodes = self.eligible(pod)
        if not nodes:
            return f"none of {len(self.nodes)} nodes is eligible (taints, node selector, affinity, readiness)"
        short: Counter[str] = Counter()
        for node in nodes:
            free = self._free[node.metadata.name]
            short.update(r for r, amount in pod.requests.items() if free.get(r, 0) < amount)
        if not short:
            return "the nodes have room for single pods, not for all that the gang needs"
        resource, count = short.most_common(1)[0]
        return f"{count} of {len(nodes)} eligible nodes lack {resource}"


def _scarcest(requests: Resources) -> str:
    """The extended resource that is asked for, else CPU or memory."""
    extended = sorted(name for name in requests if "/" in name)
    return extended[0] if extended else next((name for name in ("cpu", "memory") if name in requests), "pods")


def plan(gangs: Iterable[Gang], room: Room) -> Plan:
    """Decides one round. `gangs` are in order of their claim; an infeasible one does not hold up those behind it."""
    result = Plan()
    order = list(gangs)
    placed = [gang for gang in order if not gang.incomplete and place_floor(gang, room, result)]
    for gang in placed:
        place_extras(gang, room, result)
    return result


def place_floor(gang: Gang, room: Room, result: Plan) -> bool:
    """Places what all groups lack to their floors, whole or not at all; says whether the floors are now reached."""
    mark = room.mark()
    chosen: list[tuple[Pod, str]] = []
    # Big pods first: small ones fill the gaps.
    needed = [(pod, group) for group in gang.groups for pod in group.waiting[: group.lacking]]
    for pod, group in sorted(needed, key=lambda pair: _size(pair[0]), reverse=True):
        node = room.take(pod)
        if node is None:
            reason = room.shortage(pod)
            room.undo(mark)
            result.waiting[gang.name] = (
                f"{len(chosen)} of {len(needed)} pods that its floors need can be placed; for {group.name}: {reason}"
            )
            return False
        chosen.append((pod, node))
    result.bindings += chosen
    return True


def place_extras(gang: Gang, room: Room, result: Plan) -> None:
    """Places pods beyond the floors, each by itself."""
    for group in gang.groups:
        for pod in group.waiting[group.lacking :]:
            node = room.take(pod)
            if node is not None:
                result.bindings.append((pod, node))


def _size(pod: Pod) -> tuple[int, int]:
    requests = pod.requests
    return requests.get(_scarcest(requests), 0), requests.get("cpu", 0)
