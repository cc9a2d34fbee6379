"""The reason why a gang waits, for conditions and events: which group lacks which resource or domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reference_impl.scheduler.capacity import Capacity, describe_refusals
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.placing import needs_of, restrictions, settled_domains
from reference_impl.scheduler.search import Budget, Need, Restriction, Search
from reference_impl.scheduler.stepwise import Stepwise

Kind = Literal[
    "nodes",
    "resource",
    "domain",
    "together",
    "torn",
    "filters",
    "volumes",
    "base",
    "leaving",
    "nominated",
    "effort",
    "behind",
]


@dataclass(frozen=True)
class Shortfall:
    """The shortfall of a gang. `kind` determines which of the other fields are set:

    - `nodes`     no node is eligible for a pod of the group because of taints, selectors, affinity or readiness
    - `resource`  the nodes have too little of `resource`
    - `domain`    no single domain of `key` has capacity; the best one, `domain`, lacks `resource`
    - `together`  each group fits alone, but not all groups together
    - `filters`   filters reject nodes because of other pods, including pods of the gang
    - `volumes`   the nodes are chosen, but claims (`detail`) are not bound yet
    - `torn`      the bound pods are in several domains of `key`, or in none
    - `base`      the minimum of the base gang `domain` is not scheduled
    - `leaving`   victims on the chosen nodes are still terminating
    - `nominated` the gang fits only because of pods that are not bound yet, since they wait for victims to terminate
    - `effort`    the search budget was exhausted
    - `behind`    room is reserved for the gang `domain` of higher priority, whose search budget was exhausted
    """

    kind: Kind
    group: str = ""
    resource: str = ""
    key: str = ""
    domain: str = ""
    needed: int = 0
    possible: int = 0
    """`needed` is the number of pods of the group in the minimum, and `possible` is the number of these pods that
    fit."""
    detail: str = ""
    """The number of nodes that each filter rejects, the unbound claims, or the obstacle of the first attempt."""

    def __str__(self) -> str:
        match self.kind:
            case "nodes":
                return f"for {self.group} no node is eligible: {self.detail}"
            case "filters":
                return f"only {self.possible} of {self.needed} pods of {self.group} can be placed: {self.detail}"
            case "resource":
                part = f"{self.possible} of {self.needed} pods of {self.group}"
                return f"nodes have capacity for {part}: {self.resource} is short"
            case "domain" if not self.domain:
                return f"no eligible node for {self.group} has the label {self.key}"
            case "domain":
                return (
                    f"no {self.key} has capacity for all pods: the best, {self.domain}, fits {self.possible} of "
                    f"{self.needed} pods of {self.group}: {self.resource} is short"
                )
            case "together":
                domain_text = f" in one {self.key}" if self.key else ""
                return f"each group has capacity, but not all of them together{domain_text}: {self.resource} is short"
            case "volumes":
                return f"waits until volumes are bound to claims: {self.detail}"
            case "torn":
                return f"its bound pods are not in one {self.key}"
            case "base":
                return f"its base gang {self.domain} does not have its minimums placed"
            case "leaving":
                return f"waits for {self.needed} pods to go"
            case "nominated":
                return "it can be placed only because of pods that are not bound yet"
            case "effort":
                first_try = f"; at first {self.detail}" if self.detail else ""
                return f"no placement was found with reasonable effort{first_try}"
            case "behind":
                return f"room is kept for {self.domain} of higher priority, whose placement is not decided yet"


def explain_shortfall(gang: Gang, capacity: Capacity, *, exhausted: bool = False) -> Shortfall:
    """Return the reason why the missing pods of a gang's minimum cannot be placed in the current capacity."""
    needs = needs_of(gang, gang.pending_pods, capacity)
    for need in needs:
        name = gang.groups[need.group].name
        if not need.shape.eligible:
            return Shortfall("nodes", name, needed=need.count, detail=need.shape.ineligibility)
        if need.shape.total < need.count:
            resource = _scarcest(need, need.shape.shortages())
            return Shortfall("resource", name, resource, needed=need.count, possible=need.shape.total)
    required = restrictions(gang, needs, capacity)
    if required is None:
        return _torn_shortfall(gang, capacity)
    for restriction in required:
        if (shortfall := _domain_shortfall(gang, needs, restriction, capacity)) is not None:
            return shortfall
    filter_shortfall = _filter_shortfall(gang, needs, capacity)
    if exhausted:
        return Shortfall("effort", detail=str(filter_shortfall or ""))
    if filter_shortfall is not None:
        return filter_shortfall
    scarce_resource = needs[0].shape.scarce_resource
    narrowest_key = required[-1].key if required else ""
    return Shortfall("together", resource=scarce_resource, key=narrowest_key)


def refusals(gang: Gang, group: int, pod: Pod, capacity: Capacity) -> str:
    """Return a text that gives the number of nodes that each filter rejects for an extra pod, or an empty string if
    only capacity is short."""
    needs = needs_of(gang, [(group, [pod])], capacity)
    if not needs[0].shape.eligible:
        return needs[0].shape.ineligibility
    filter_shortfall = (
        _filter_shortfall(gang, needs, capacity) if needs[0].shape.guard and needs[0].shape.total else None
    )
    return filter_shortfall.detail if filter_shortfall else ""


def _filter_shortfall(gang: Gang, needs: list[Need], capacity: Capacity) -> Shortfall | None:
    """Return the shortfall of the first pods that filters reject because of other pods, or None if no pods are
    rejected."""
    if all(need.shape.guard is None for need in needs):
        return None
    search, mark = Search(capacity, needs, [], Budget()), capacity.mark()
    attempt = Stepwise(search, [None] * len(needs))
    attempt.run(explain=True)
    capacity.undo(mark)
    if attempt.obstacle is None:
        return None
    need, possible, refusals = attempt.obstacle
    name = gang.groups[need.group].name
    return Shortfall("filters", name, needed=need.count, possible=possible, detail=describe_refusals(refusals))


def shortfall_for_gang(shortfall: Shortfall, gang: Gang, other: Gang) -> Shortfall:
    """Return the same shortfall for another gang of the same form."""
    names = [group.name for group in gang.groups]
    if shortfall.group not in names:
        return shortfall
    return replace(shortfall, group=other.groups[names.index(shortfall.group)].name)


def _domain_shortfall(
    gang: Gang, needs: Sequence[Need], restriction: Restriction, capacity: Capacity
) -> Shortfall | None:
    """Return the shortfall of the best domain, or None if some domain fits each single need."""
    restricted_needs = [needs[n] for n in restriction.needs]
    sums = [need.shape.sums(restriction.key) for need in restricted_needs]
    best: tuple[float, str] | None = None
    for value in restriction.settled or capacity.domains(restriction.key):
        share = min(
            min(1.0, slots.get(value, 0) / need.count) for need, slots in zip(restricted_needs, sums, strict=True)
        )
        if best is None or share > best[0]:
            best = (share, value)
    if best is None:
        return Shortfall("domain", gang.groups[restricted_needs[0].group].name, key=restriction.key)
    if best[0] >= 1:
        return None
    need, slots = min(
        zip(restricted_needs, sums, strict=True), key=lambda pair: pair[1].get(best[1], 0) / pair[0].count
    )
    nodes = [i for i in capacity.domains(restriction.key)[best[1]] if i in need.shape.slots]
    return Shortfall(
        "domain",
        gang.groups[need.group].name,
        _scarcest_on(need, nodes, capacity),
        restriction.key,
        best[1],
        need.count,
        slots.get(best[1], 0),
    )


def _torn_shortfall(gang: Gang, capacity: Capacity) -> Shortfall:
    for scope in gang.scopes:
        settled = settled_domains(gang, scope, scope.required, capacity) if scope.required else frozenset()
        if len(settled) > 1 or "" in settled:
            return Shortfall("torn", key=scope.required)
    return Shortfall("effort")


def _scarcest_on(need: Need, nodes: Sequence[int], capacity: Capacity) -> str:
    free = [capacity.free[i] for i in nodes]
    return _scarcest(
        need,
        Counter(
            {r: sum([free_amounts.get(r, 0) < amount for free_amounts in free]) for r, amount in need.shape.requests}
        ),
    )


def _scarcest(need: Need, shortages: Counter[str]) -> str:
    """Return the resource that is short on the most nodes; if no resource is short, the resource that limits the
    shape."""
    resource, count = shortages.most_common(1)[0]
    return resource if count else need.shape.scarce_resource
