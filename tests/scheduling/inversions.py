"""Violations of the hard rules in a cycle's plan for a large scene: torn gangs, overcommitted nodes and inverted
priorities.

The checks are independent of the scheduler. They read the scene, and only the names of pods and nodes from the plan.
They decide whether a waiting gang would have fit by first fit and best fit in several orders. A reported breach is
therefore certain, but a breach that only a difficult packing shows may go unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations

from reference_impl.scheduler.cycle import Plan
from tests.scheduling import fragmented
from tests.scheduling.fragmented import GPU, Amounts, Gang, Group, Host, Scene, fits, take

Placed = dict[str, list[str]]
"""The nodes of newly bound pods, by group."""


def judge_seed(seed: int) -> list[str]:
    """Return the breaches of one cycle on a generated scene, and the gangs for which the search gave up."""
    scene = fragmented.scene(seed)
    plan = fragmented.plan(scene)
    given_up = [f"{name}: {shortfall}" for name, shortfall in plan.waiting.items() if shortfall.kind == "effort"]
    return breaches(scene, plan) + given_up


def breaches(scene: Scene, plan: Plan) -> list[str]:
    """Return all breaches of a plan."""
    placed: Placed = {}
    for pod, node in plan.bindings:
        placed.setdefault(pod.metadata.name.rpartition("-")[0], []).append(node)
    free = _free(scene, placed)
    violations = [f"{name} is overfull" for name, free_amounts in free.items() if min(free_amounts.values()) < 0]
    violations += [f"{gang.name} is torn" for gang in scene.gangs if _is_torn(scene, gang, placed)]
    for node, amounts in _reserved(scene, plan):
        take(amounts, free[node])
    inverted = _inverted_priorities(scene, placed, free)
    return violations + [f"{high} waits although it fits, and {low} is placed" for high, low in inverted]


def _free(scene: Scene, placed: Placed) -> dict[str, Amounts]:
    """Return the free capacity of each node. Victims occupy their nodes until they have terminated."""
    free = {host.name: dict(host.free) for host in scene.hosts}
    for group in (group for gang in scene.gangs for group in gang.groups):
        for node in [*group.bound, *placed.get(group.name, ())]:
            take(group.requests, free[node])
    return free


def _reserved(scene: Scene, plan: Plan) -> list[tuple[str, Amounts]]:
    """Return the resources that each gang that waits for its victims needs on each node, minus the resources that its
    victims hold there."""
    requests = {group.name: group.requests for gang in scene.gangs for group in gang.groups}
    net_requests: dict[tuple[str, str], Amounts] = {}
    for gang, bound in plan.nominated.items():
        for pod, node in bound:
            take(requests[pod.metadata.name.rpartition("-")[0]], net_requests.setdefault((gang, node), {}), -1)
    for eviction in plan.evictions:
        if (needed := net_requests.get((eviction.preemptor, eviction.node))) is not None:
            take(requests[eviction.pod.metadata.name.rpartition("-")[0]], needed)
    return [
        (node, {name: max(0, amount) for name, amount in needed.items()}) for (_, node), needed in net_requests.items()
    ]


def _is_torn(scene: Scene, gang: Gang, placed: Placed) -> bool:
    """Return whether only a part of a gang is bound, or its pods are spread over several domains of a level that it
    requires."""
    labels = {host.name: host.labels for host in scene.hosts}
    if any(group.bound for group in gang.groups) or not any(group.name in placed for group in gang.groups):
        return False
    gang_nodes = {node for group in gang.groups for node in placed.get(group.name, ())}
    return (
        any(len(placed.get(group.name, ())) < group.minimum for group in gang.groups)
        or (gang.required != "" and len({labels[node][gang.required] for node in gang_nodes}) > 1)
        or any(
            group.required and len({labels[node][group.required] for node in placed.get(group.name, ())}) > 1
            for group in gang.groups
        )
    )


def _inverted_priorities(scene: Scene, placed: Placed, free: dict[str, Amounts]) -> Iterator[tuple[str, str]]:
    """Yield each waiting gang that fits into the free capacity plus the capacity given to gangs of lower priority, with
    one of those gangs of lower priority."""
    placed_gangs = [gang for gang in scene.gangs if any(group.name in placed for group in gang.groups)]
    for high_gang in waiting_gangs(scene, placed):
        lower_gangs = [gang for gang in placed_gangs if gang.priority < high_gang.priority]
        if lower_gangs and fits_simply(scene, high_gang, free_without(lower_gangs, placed, free)):
            yield high_gang.name, lower_gangs[0].name


def waiting_gangs(scene: Scene, placed: Placed) -> list[Gang]:
    """Return the gangs without a bound pod."""
    return [g for g in scene.gangs if not any(group.bound or group.name in placed for group in g.groups)]


def free_without(lower_gangs: list[Gang], placed: Placed, free: Mapping[str, Amounts]) -> dict[str, Amounts]:
    """Return the free capacity as if the newly bound pods of the gangs in `lower_gangs` were not bound."""
    result = {name: dict(amounts) for name, amounts in free.items()}
    for group in (group for gang in lower_gangs for group in gang.groups):
        for node in placed.get(group.name, ()):
            take(group.requests, result[node], -1)
    return result


def fits_simply(scene: Scene, gang: Gang, free: Mapping[str, Amounts]) -> bool:
    """Return whether some simple order of groups and nodes has room for the gang's minimums."""
    domains: dict[str, list[Host]] = {}
    for host in scene.hosts:
        domains.setdefault(host.labels[gang.required] if gang.required else "", []).append(host)
    return any(
        _pack(order, hosts, {host.name: dict(free[host.name]) for host in hosts}, tight=tight)
        for hosts in domains.values()
        if sum(free[host.name][GPU] for host in hosts) >= sum(g.minimum * g.requests.get(GPU, 0) for g in gang.groups)
        for order in permutations(gang.groups)
        for tight in (True, False)
    )


def _pack(order: tuple[Group, ...], hosts: list[Host], free: dict[str, Amounts], *, tight: bool) -> bool:
    for group in order:
        by_domain: dict[str, list[Host]] = {}
        for host in hosts:
            if fits(group.requests, free[host.name]):
                by_domain.setdefault(host.labels[group.required] if group.required else "", []).append(host)
        if not any(
            _fill(group, domain_hosts, free, tight=tight)
            for domain_hosts in _ranked_domains(by_domain, free, tight=tight)
        ):
            return False
    return True


def _ranked_domains(by_domain: dict[str, list[Host]], free: Mapping[str, Amounts], *, tight: bool) -> list[list[Host]]:
    def size(domain_hosts: list[Host]) -> tuple[int, int]:
        return sum(free[h.name][GPU] for h in domain_hosts), sum(free[h.name]["cpu"] for h in domain_hosts)

    return sorted(by_domain.values(), key=size, reverse=not tight)


def _fill(group: Group, domain_hosts: list[Host], free: dict[str, Amounts], *, tight: bool) -> bool:
    chosen_hosts: list[str] = []
    for host in sorted(domain_hosts, key=lambda h: (free[h.name][GPU], free[h.name]["cpu"]), reverse=not tight):
        while len(chosen_hosts) < group.minimum and fits(group.requests, free[host.name]):
            take(group.requests, free[host.name])
            chosen_hosts.append(host.name)
    if len(chosen_hosts) == group.minimum:
        return True
    for node in chosen_hosts:
        take(group.requests, free[node], -1)
    return False
