"""Brute force: every way to distribute the pods of a gang's groups over nodes, within capacity and required domains.

The code is deliberately simple, because it judges schedulers that are not. Its only optimization is to stop when the
remaining pods cannot fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from conformance.grove.scheduling.admits import admits
from conformance.grove.scheduling.instance import Gang, Group, Instance, Node, Resources, Spread

FreeCapacity = Mapping[str, Mapping[str, int]]
"""Node → resource → free units."""

Domains = Mapping[int, str]
"""Index in `required_scopes(gang)` → the label value that all pods of the scope must share."""


MAX_STATES = 5_000
"""Maximum number of states that `surely_fits` examines."""


class RequiredScope(NamedTuple):
    """A required topology constraint: the label key, and the groups that it covers."""

    key: str
    groups: tuple[str, ...]


def required_scopes(gang: Gang) -> list[RequiredScope]:
    """Return the required constraints of a gang."""
    return [RequiredScope(scope.required, scope.groups) for scope in gang.scopes if scope.required]


def fits(instance: Instance, gang: Gang, counts: Mapping[str, int], capacity: FreeCapacity, domains: Domains) -> bool:
    """Return whether there is any way to place `counts` pods (by group)."""
    return next(distributions(instance, gang, counts, capacity, domains), None) is not None


def surely_fits(
    instance: Instance, gang: Gang, counts: Mapping[str, int], capacity: FreeCapacity, domains: Domains
) -> bool:
    """Return whether there are domains in which all pods fit if they are placed one by one, in any order and on any
    nodes. Return False if there are too many cases to try."""
    scopes = required_scopes(gang)
    labels = [
        sorted({node.labels[scope.key] for node in instance.nodes if scope.key in node.labels}) for scope in scopes
    ]
    remaining_states = iter(range(MAX_STATES))
    return any(
        _surely_fits(instance, gang, counts, capacity, dict(enumerate(chosen)), remaining_states)
        for chosen in product(*([domains[i]] if i in domains else values for i, values in enumerate(labels)))
    )


def _surely_fits(
    instance: Instance,
    gang: Gang,
    counts: Mapping[str, int],
    capacity: FreeCapacity,
    domains: Domains,
    remaining_states: Iterator[int],
) -> bool:
    scopes, visited = required_scopes(gang), set[object]()
    keys = {
        group.name: [(scope.key, domains[i]) for i, scope in enumerate(scopes) if group.name in scope.groups]
        for group in gang.groups
    }
    usable_nodes = {
        group.name: [
            node
            for node in instance.nodes
            if admits(node, group) and all(node.labels.get(key) == value for key, value in keys[group.name])
        ]
        for group in gang.groups
    }

    def always_fits(unplaced: Mapping[str, int], capacity: FreeCapacity) -> bool:
        state = (tuple(unplaced.values()), tuple(tuple(free.values()) for free in capacity.values()))
        if state in visited or not any(unplaced.values()):
            return True
        if next(remaining_states, None) is None:
            return False
        for group in (group for group in gang.groups if unplaced.get(group.name)):
            nodes = [
                node for node in usable_nodes[group.name] if _count_fitting(capacity[node.name], group.requests, 1)
            ]
            next_unplaced = {**unplaced, group.name: unplaced[group.name] - 1}
            if not nodes or not all(
                always_fits(next_unplaced, without(capacity, group.requests, {node.name: 1})) for node in nodes
            ):
                return False
        visited.add(state)
        return True

    return always_fits(counts, capacity)


def distributions(
    instance: Instance, gang: Gang, counts: Mapping[str, int], capacity: FreeCapacity, domains: Domains
) -> Iterator[dict[str, Spread]]:
    """Yield every way to place `counts` pods (by group), each once. `domains` are already fixed by bound pods."""
    groups = [group for group in gang.groups if counts.get(group.name)]
    yield from _groups(instance, gang, groups, counts, capacity, dict(domains))


def _groups(
    instance: Instance,
    gang: Gang,
    groups: list[Group],
    counts: Mapping[str, int],
    capacity: FreeCapacity,
    domains: dict[int, str],
) -> Iterator[dict[str, Spread]]:
    if not groups:
        yield {}
        return
    group, other_groups = groups[0], groups[1:]
    scopes = required_scopes(gang)
    indices = [index for index, scope in enumerate(scopes) if group.name in scope.groups]
    for chosen in _choices(instance, scopes, indices, domains):
        nodes = [
            node
            for node in instance.nodes
            if admits(node, group) and all(node.labels.get(scopes[i].key) == chosen[i] for i in indices)
        ]
        for spread in _spreads(nodes, group.requests, counts[group.name], capacity):
            for remaining in _groups(
                instance, gang, other_groups, counts, without(capacity, group.requests, spread), chosen
            ):
                yield {group.name: spread, **remaining}


def _choices(
    instance: Instance, scopes: list[RequiredScope], indices: list[int], domains: dict[int, str]
) -> Iterator[dict[int, str]]:
    """Yield every way to choose the open domains of the scopes with these `indices`, from combinations of label values
    that occur on a node."""
    unsettled = [i for i in indices if i not in domains]
    visited = set()
    for node in instance.nodes:
        values = tuple(node.labels.get(scopes[i].key, "") for i in unsettled)
        if all(values) and values not in visited:
            visited.add(values)
            yield {**domains, **dict(zip(unsettled, values, strict=True))}
    if not unsettled and not instance.nodes:
        yield domains


def _spreads(nodes: list[Node], asks: Resources, count: int, capacity: FreeCapacity) -> Iterator[dict[str, int]]:
    """Yield every way to put `count` pods on `nodes`."""
    capacities = [_count_fitting(capacity[node.name], asks, count) for node in nodes]
    capacity_after = [sum(capacities[i:]) for i in range(len(capacities) + 1)]

    def spread(index: int, unplaced: int) -> Iterator[dict[str, int]]:
        if not unplaced:
            yield {}
            return
        if capacity_after[index] < unplaced:
            return
        for node_count in range(min(capacities[index], unplaced), -1, -1):
            for other_groups in spread(index + 1, unplaced - node_count):
                yield {nodes[index].name: node_count, **other_groups} if node_count else other_groups

    yield from spread(0, count)


def _count_fitting(capacity: Mapping[str, int], asks: Resources, count: int) -> int:
    """Return how many of `count` pods fit on a node."""
    limits = [capacity[resource] // amount for resource, amount in asks.items() if amount and resource in capacity]
    return max(0, min([count, *limits]))


def without(capacity: FreeCapacity, asks: Resources, spread: Spread) -> FreeCapacity:
    """Return the remaining capacity after placing pods."""
    remaining = dict(capacity)
    for node, count in spread.items():
        node_count = capacity[node]
        remaining[node] = {
            **node_count,
            **{r: node_count[r] - amount * count for r, amount in asks.items() if r in node_count},
        }
    return remaining
