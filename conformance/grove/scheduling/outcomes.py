"""Enumerate all permitted outcomes of an instance, and rate the quality of an outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, combinations, product

from conformance.grove.scheduling.instance import (
    Gang,
    Instance,
    Placed,
    SchedulingOutcome,
    Spread,
    free_capacity,
    members,
    survivors,
)
from conformance.grove.scheduling.rules import must_breaches, settled_domains, verdict
from conformance.grove.scheduling.search import distributions


def permitted_outcomes(instance: Instance) -> Iterator[SchedulingOutcome]:
    """Yield every outcome at rest without a MUST breach, each once. Only for small instances: about 6 nodes, 8 pods, 3
    gangs.

    Pods of evicted gangs are not recreated. Missing pods of a running gang are placed only if the gang then has its
    minimums.
    """
    for evicted in _evictions(instance):
        for placed in _placements(instance, list(instance.gangs), SchedulingOutcome(evicted=evicted)):
            outcome = SchedulingOutcome(placed, evicted)
            if not must_breaches(verdict(instance, outcome)):
                yield outcome


def recommended_outcomes(instance: Instance) -> list[SchedulingOutcome]:
    """Return the permitted outcomes without a SHOULD breach that have the best score."""
    candidates = [outcome for outcome in permitted_outcomes(instance) if not verdict(instance, outcome)]
    best = max((score(instance, outcome) for outcome in candidates), default=1.0)
    return [outcome for outcome in candidates if score(instance, outcome) == best]


def score(instance: Instance, outcome: SchedulingOutcome) -> float:
    """Return the mean of 1 / (number of domains used) over the preferred scopes of the placed gangs; 1.0 if there are
    none (OR-9). A node that is not part of the instance counts as a separate domain."""
    labels = {node.name: node.labels for node in instance.nodes}
    scores = []
    for gang in instance.gangs:
        for scope in gang.scopes:
            nodes = chain.from_iterable(members(instance, outcome, gang.name, group) for group in scope.groups)
            used_domains = {labels.get(node, {}).get(scope.preferred, f"none of {node}") for node in nodes}
            if scope.preferred and used_domains:
                scores.append(1 / len(used_domains))
    return sum(scores) / len(scores) if scores else 1.0


def _evictions(instance: Instance) -> Iterator[frozenset[str]]:
    highest_priority = max((gang.priority for gang in instance.gangs), default=0)
    names = [
        pod.name for pod in instance.running if pod.state == "running" and instance.priority(pod) < highest_priority
    ]
    for size in range(len(names) + 1):
        yield from map(frozenset, combinations(names, size))


def _placements(instance: Instance, gangs: list[Gang], so_far: SchedulingOutcome) -> Iterator[Placed]:
    """Yield placements gang by gang: each gang gets either no pods or any number from its minimums to the desired pods,
    in any way that fits."""
    if not gangs:
        yield so_far.placed
        return
    gang, later_gangs = gangs[0], gangs[1:]
    yield from _placements(instance, later_gangs, so_far)
    evicted = any(pod.gang == gang.name and pod.name in so_far.evicted for pod in instance.running)
    if evicted:
        return
    for spreads in _gang_placements(instance, gang, so_far):
        extended = SchedulingOutcome({**so_far.placed, gang.name: spreads}, so_far.evicted)
        yield from _placements(instance, later_gangs, extended)


def _gang_placements(instance: Instance, gang: Gang, so_far: SchedulingOutcome) -> Iterator[Mapping[str, Spread]]:
    bound_counts = {group.name: survivors(instance, so_far, gang.name, group.name).total() for group in gang.groups}
    ranges = [
        range(max(0, g.minimum - bound_counts[g.name]), max(0, g.desired - bound_counts[g.name]) + 1)
        for g in gang.groups
    ]
    capacity, domains = free_capacity(instance, so_far), settled_domains(instance, so_far, gang)
    for counts in product(*ranges):
        counts_by_group = {group.name: count for group, count in zip(gang.groups, counts, strict=True) if count}
        if counts_by_group:
            yield from distributions(instance, gang, counts_by_group, capacity, domains)
