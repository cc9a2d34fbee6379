"""Demands of pods on other pods on the same node or in the same domain: host ports, anti-affinity, affinity, spread.

The rules follow Kubernetes' documentation of these fields. The bound pods are judged as a whole, not in the order of
their bindings, because a gang scheduler decides on all pods of a gang together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from conformance.grove.scheduling.admits import selection_problem
from conformance.grove.scheduling.instance import Group, Instance, Node, SchedulingOutcome
from conformance.grove.scheduling.scenario_format import PAIR_DEMANDS


@dataclass(frozen=True)
class BoundPod:
    """A pod of a gang on a node."""

    gang: str
    group: Group
    node: Node
    is_new: bool
    """Whether the outcome bound the pod; otherwise the pod was already running."""

    @property
    def full_name(self) -> str:
        """Return the pod's gang and group as `gang/group`."""
        return f"{self.gang}/{self.group.name}"

    def domain(self, key: str) -> str:
        """Return the domain of its node; empty if the node has none."""
        return self.node.labels.get(key, "")


class Clash(NamedTuple):
    """A demand of a bound pod that is not satisfied."""

    rule: str
    """`OR-…` of spec E.1."""
    gang: str
    text: str


def has_pair_demands(instance: Instance) -> bool:
    """Return whether any pod has a demand on other pods."""
    return any(key in group.demands for gang in instance.gangs for group in gang.groups for key in PAIR_DEMANDS)


def clashes(instance: Instance, outcome: SchedulingOutcome) -> Iterator[Clash]:
    """Yield the unsatisfied demands among those that must hold at every moment: host ports and anti-affinity."""
    if not has_pair_demands(instance):
        return
    pods = bound_pods(instance, outcome)
    yield from _host_ports(pods)
    yield from _apart(pods)


def clashes_at_rest(instance: Instance, outcome: SchedulingOutcome) -> Iterator[Clash]:
    """Yield the unsatisfied demands among those that must hold only at rest: affinity and spread. Both may be violated
    while the pods of a gang are being bound one after the other."""
    if not has_pair_demands(instance):
        return
    pods = bound_pods(instance, outcome)
    yield from _together(pods)
    yield from _spread(instance, pods)


def bound_pods(instance: Instance, outcome: SchedulingOutcome) -> list[BoundPod]:
    """Return the pods of gangs that occupy a node, starting with the pods that were already running."""
    nodes = {node.name: node for node in instance.nodes}
    bound = [
        BoundPod(pod.gang, instance.gang(pod.gang).group(pod.group), nodes[pod.node], is_new=False)
        for pod in instance.running
        if pod.gang and pod.occupies_node and pod.name not in outcome.evicted and pod.node in nodes
    ]
    for gang in instance.gangs:
        for group in gang.groups:
            for node, count in outcome.of(gang.name, group.name).items():
                if node in nodes:
                    bound += [BoundPod(gang.name, group, nodes[node], is_new=True) for _ in range(count)]
    return bound


def _host_ports(pods: Sequence[BoundPod]) -> Iterator[Clash]:
    users: defaultdict[tuple[str, int], list[BoundPod]] = defaultdict(list)
    for pod in pods:
        for port in pod.group.demands.get("hostPorts", ()):
            users[(pod.node.name, port)].append(pod)
    for (node, port), port_users in users.items():
        if len(port_users) > 1 and port_users[-1].is_new:
            yield Clash("OR-10", port_users[-1].gang, f"{len(port_users)} pods on {node} use host port {port}")


def _apart(pods: Sequence[BoundPod]) -> Iterator[Clash]:
    for first_pod, second_pod in combinations(pods, 2):
        for pod, neighbor in ((first_pod, second_pod), (second_pod, first_pod)):
            for term in pod.group.demands.get("apart", ()):
                domain = pod.domain(term["key"])
                if (
                    domain
                    and domain == neighbor.domain(term["key"])
                    and _is_selected(neighbor, pod, term)
                    and (pod.is_new or neighbor.is_new)
                ):
                    text = f"pods of {pod.full_name} and {neighbor.full_name} are in {term['key']} {domain}"
                    yield Clash("OR-11", pod.gang, f"{text}, and the former's anti-affinity forbids that")


def _together(pods: Sequence[BoundPod]) -> Iterator[Clash]:
    for pod in pods:
        for term in pod.group.demands.get("together", ()) if pod.is_new else ():
            neighbors = [neighbor for neighbor in pods if neighbor is not pod and _is_selected(neighbor, pod, term)]
            is_first = not neighbors and _is_selected(pod, pod, term)
            domain = pod.domain(term["key"])
            if not domain or not (is_first or any(neighbor.domain(term["key"]) == domain for neighbor in neighbors)):
                text = f"a pod of {pod.full_name} has none of those that its affinity requires in {term['key']}"
                yield Clash("OR-12", pod.gang, f"{text} {domain or '(no label)'}")


def _spread(instance: Instance, pods: Sequence[BoundPod]) -> Iterator[Clash]:
    for gang in instance.gangs:
        for group in gang.groups:
            group_pods = [pod for pod in pods if pod.full_name == f"{gang.name}/{group.name}"]
            for constraint in group.demands.get("spread", ()):
                key = constraint["key"]
                eligible = [
                    node for node in instance.nodes if key in node.labels and not selection_problem(node, group)
                ]
                counts = Counter({node.labels[key]: 0 for node in eligible})
                counts.update(pod.domain(key) for pod in group_pods)
                lowest_count = min(counts.values(), default=0)
                for domain in {pod.domain(key) for pod in group_pods if pod.is_new}:
                    if not domain or counts[domain] - lowest_count > constraint["maxSkew"]:
                        crowding = f"{counts[domain]} pods of {group.name} are in {key} {domain or '(no label)'}"
                        yield Clash("OR-13", gang.name, f"{crowding}, {lowest_count} in another one")


def _is_selected(neighbor: BoundPod, pod: BoundPod, term: Mapping[str, Any]) -> bool:
    """Return whether a term of `pod` selects `neighbor`: the term selects the groups that it names, or the pod's own
    group."""
    return neighbor.full_name in term.get("groups", (pod.full_name,))
