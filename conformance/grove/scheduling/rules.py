"""Judge an outcome at rest: find its breaches, each with the broken rule of the specification.

MUST breaches make an outcome forbidden; SHOULD breaches are reported as a lack of quality (spec E.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import Literal

from conformance.grove.scheduling.admits import refusal
from conformance.grove.scheduling.instance import (
    Gang,
    Group,
    Instance,
    RunningPod,
    SchedulingOutcome,
    free_capacity,
    is_admitted,
    members,
    survivors,
)
from conformance.grove.scheduling.pairs import clashes, clashes_at_rest, has_pair_demands
from conformance.grove.scheduling.search import distributions, fits, required_scopes, surely_fits

Level = Literal["MUST", "SHOULD"]
NO_DOMAIN = ""
"""The domain of a scope whose pods do not share a domain; no node is in it."""


@dataclass(frozen=True)
class Breach:
    """A broken rule, with the gang that it is about and a human-readable text."""

    rule: str
    """`GS-…` of spec A.3, or `OR-…` of spec E.1 for rules that only spec E.1 has."""
    gang: str
    text: str
    level: Level = "MUST"
    victim: str = ""
    """The evicted pod that the breach is about, if any."""
    extra: bool = False
    """Whether the breach is about a pod above the minimum of its group."""

    def __str__(self) -> str:
        return f"{self.rule} {self.gang + ': ' if self.gang else ''}{self.text}"


def verdict(instance: Instance, outcome: SchedulingOutcome) -> list[Breach]:
    """Return all breaches of an outcome at rest. Progress is judged only for outcomes without other MUST breaches,
    because it would be misleading otherwise."""
    breaches = [*safety(instance, outcome), *partial_gangs(instance, outcome), *_victim_breaches(instance, outcome)]
    breaches += [Breach(*clash) for clash in clashes_at_rest(instance, outcome)]
    if not must_breaches(breaches):
        breaches += [*_progress_breaches(instance, outcome), *_costly_evictions(instance, outcome)]
    return breaches


def must_breaches(breaches: list[Breach]) -> list[Breach]:
    """Return the breaches that make an outcome forbidden."""
    return [breach for breach in breaches if breach.level == "MUST"]


# Rules that apply at every moment, not only at rest.


def safety(instance: Instance, outcome: SchedulingOutcome) -> Iterator[Breach]:
    """Yield the breaches of rules that apply at every moment: capacity, nodes, clashing pods, domains, base gangs."""
    yield from _capacity_breaches(instance, outcome)
    yield from (Breach(*clash) for clash in clashes(instance, outcome))
    for gang in instance.gangs:
        yield from _node_breaches(instance, outcome, gang)
        yield from _domain_breaches(instance, outcome, gang)
        yield from _base_gang_order(instance, outcome, gang)


def _capacity_breaches(instance: Instance, outcome: SchedulingOutcome) -> Iterator[Breach]:
    free_before = free_capacity(instance, SchedulingOutcome(evicted=outcome.evicted))
    for node, free_amounts in free_capacity(instance, outcome).items():
        for resource, amount in free_amounts.items():
            if amount < min(0, free_before[node][resource]):
                yield Breach("OR-1", "", f"node {node} exceeds its {resource} by {-amount}")


def _node_breaches(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> Iterator[Breach]:
    nodes = {node.name: node for node in instance.nodes}
    for group in gang.groups:
        spread = outcome.of(gang.name, group.name)
        for name in spread:
            if name not in nodes:
                yield Breach("OR-16", gang.name, f"a pod of {group.name} is on {name}, which its nodeSelector excludes")
            elif not nodes[name].schedulable:
                yield Breach("GS-42", gang.name, f"a pod of {group.name} was bound to {name}, which is not schedulable")
            elif reason := refusal(nodes[name], group):
                yield Breach(reason.rule, gang.name, f"a pod of {group.name} was bound to {name}: {reason.text}")
        if (count := members(instance, outcome, gang.name, group.name).total()) > group.desired:
            yield Breach("OR-2", gang.name, f"{group.name} has {count} pods, {group.desired} are desired")


def _domain_breaches(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> Iterator[Breach]:
    labels = {node.name: node.labels for node in instance.nodes}
    for scope in required_scopes(gang):

        def domains(nodes: Iterable[str], key: str = scope.key) -> set[str]:
            return {labels.get(node, {}).get(key, NO_DOMAIN) for node in nodes}

        old_domains = domains(node for group in scope.groups for node in survivors(instance, outcome, gang.name, group))
        new_domains = domains(node for group in scope.groups for node in outcome.of(gang.name, group))
        about = f"{scope.key} of {', '.join(scope.groups)}"
        if NO_DOMAIN in new_domains:
            yield Breach("GS-34", gang.name, f"{about}: a node without the label is used")
        elif new_domains and len(old_domains | new_domains) > 1:
            rule = "GS-35" if old_domains else "GS-34"
            yield Breach(
                rule,
                gang.name,
                f"{about}: pods are in {', '.join(sorted(old_domains | new_domains))}, not in one domain",
            )


def _base_gang_order(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> Iterator[Breach]:
    if not gang.base or not outcome.placed.get(gang.name) or _is_base_admitted(instance, outcome, gang):
        return
    if not any(survivors(instance, outcome, gang.base, group) for group in _groups(instance, gang.base)):
        yield Breach("GS-03", gang.name, f"has pods bound, but its base gang {gang.base} is below its minimum")


def _groups(instance: Instance, gang: str) -> list[str]:
    return [group.name for other in instance.gangs if other.name == gang for group in other.groups]


def _is_base_admitted(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> bool:
    """Return whether the base gang of a scaled gang is is_admitted at the end. True for all other gangs."""
    base = next((other for other in instance.gangs if other.name == gang.base), None)
    return not gang.base or (base is not None and is_admitted(instance, outcome, base))


# Rules that apply when the cluster is at rest.


def partial_gangs(instance: Instance, outcome: SchedulingOutcome) -> Iterator[Breach]:
    """Yield a breach for each gang that is partially bound. A gang must have its whole minimum or no pods at all, but a
    gang that has lost pods may stay below its minimum (GS-41)."""
    for gang in instance.gangs:
        if not any(outcome.placed.get(gang.name, {}).values()) or is_admitted(instance, outcome, gang):
            continue
        if any(survivors(instance, outcome, gang.name, group.name) for group in gang.groups):
            continue
        counts = [(group, members(instance, outcome, gang.name, group.name).total()) for group in gang.groups]
        shortfalls = [f"{group.name} {count} of {group.minimum}" for group, count in counts if count < group.minimum]
        surplus = any(count > group.minimum for group, count in counts)
        yield Breach("GS-21" if surplus else "GS-20", gang.name, f"is bound in part: {', '.join(shortfalls)}")


def _victim_breaches(instance: Instance, outcome: SchedulingOutcome) -> Iterator[Breach]:
    """Yield breaches about evicted pods and the gangs for which they were evicted (GS-30 to GS-32)."""
    victims = [pod for pod in instance.running if pod.name in outcome.victims]
    if unknown_victims := outcome.victims - {pod.name for pod in victims}:
        yield Breach("OR-8", "", f"evicted {', '.join(sorted(unknown_victims))}, which were not running")
    if not victims:
        return
    yield from _partial_evictions(instance, victims)
    bound = [gang for gang in instance.gangs if any(outcome.placed.get(gang.name, {}).values())]
    for pod in victims:
        if not any(gang.priority > instance.priority(pod) for gang in bound):
            text = f"{pod.name} was evicted, but no gang of higher priority was placed"
            yield Breach("GS-30", pod.gang, text, victim=pod.name)
    yield from _orphaned_gangs(instance, victims)
    yield from _needless_evictions(instance, outcome, victims, bound)


def _orphaned_gangs(instance: Instance, victims: list[RunningPod]) -> Iterator[Breach]:
    """Yield a breach for each scaled gang that keeps running without its base gang (GS-31)."""
    still_running = [pod for pod in instance.running if pod not in victims and pod.is_active]
    evicted_gangs = {pod.gang for pod in victims} - {pod.gang for pod in still_running}
    for gang in instance.gangs:
        if gang.base and gang.base in evicted_gangs and any(pod.gang == gang.name for pod in still_running):
            yield Breach("GS-31", gang.name, f"still runs, although its base gang {gang.base} was evicted", "SHOULD")


def _partial_evictions(instance: Instance, victims: list[RunningPod]) -> Iterator[Breach]:
    for gang in instance.gangs:
        gang_pods = [pod for pod in instance.running if pod.gang == gang.name and pod.is_active]
        evicted = {pod.name for pod in victims if pod.gang == gang.name}
        if not evicted or evicted == {pod.name for pod in gang_pods}:
            continue
        counts_before, counts_after = (
            Counter(p.group for p in gang_pods),
            Counter(p.group for p in gang_pods if p.name not in evicted),
        )
        partial_groups = [g for g in gang.groups if counts_after[g.name] < min(g.minimum, counts_before[g.name])]
        if partial_groups:
            yield Breach(
                "GS-31",
                gang.name,
                f"was evicted in part: {partial_groups[0].name} is left with {counts_after[partial_groups[0].name]}",
            )


def _needless_evictions(
    instance: Instance, outcome: SchedulingOutcome, victims: list[RunningPod], bound: list[Gang]
) -> Iterator[Breach]:
    """Yield a breach if a legal subset of the victims would have sufficed; judged only if there is exactly one
    preemptor (OR-8)."""
    preemptors = [gang for gang in bound if all(gang.priority > instance.priority(pod) for pod in victims)]
    if len(preemptors) != 1 or any(pod.gang == preemptors[0].name for pod in victims):
        return
    preemptor = preemptors[0]
    evicted_gangs = {pod.gang for pod in victims}
    # Scaled gangs should be evicted together with their base gang (GS-31), so they do not count as superfluous.
    needed = [pod for pod in victims if not _goes_with_base(instance, outcome, pod, evicted_gangs)]
    remaining = {
        name: groups for name, groups in outcome.placed.items() if name not in {preemptor.name, *evicted_gangs}
    }
    # An evicted gang may have been placed again and have evicted other pods; then only these later victims are tried.
    returned = [gang.priority for gang in bound if gang.name in evicted_gangs]
    later_victims = [pod for pod in needed if instance.priority(pod) < max(returned, default=0)]
    subsets: Iterable[Sequence[RunningPod]] = (
        [later_victims]
        if later_victims
        else chain.from_iterable(combinations(needed, size) for size in range(len(needed)))
    )
    for subset in subsets:
        smaller = SchedulingOutcome({}, frozenset(pod.name for pod in subset))
        if any(_partial_evictions(instance, [pod for pod in victims if pod in subset])):
            continue
        if _minimum_fits(instance, replace(smaller, placed=remaining), preemptor):
            names = ", ".join(sorted(smaller.evicted)) or "none"
            yield Breach("GS-32", preemptor.name, f"evicted more than needed: {names} would have sufficed", "SHOULD")
            return


def _goes_with_base(instance: Instance, outcome: SchedulingOutcome, pod: RunningPod, evicted_gangs: set[str]) -> bool:
    gang = next((gang for gang in instance.gangs if gang.name == pod.gang), None)
    if gang is None or not gang.base or gang.base not in evicted_gangs:
        return False
    base = instance.gang(gang.base)
    return not is_admitted(instance, outcome, base)


def _progress_breaches(instance: Instance, outcome: SchedulingOutcome) -> Iterator[Breach]:
    """Yield breaches for gangs and pods that wait although they could be placed, or although gangs of lower priority
    were placed."""
    for gang in waiting_gangs(instance, outcome):
        if _minimum_fits(instance, outcome, gang):
            yield Breach("GS-26", gang.name, "waits, although its minimums fit into the free capacity")
            continue
        lower_gangs = {other.name for other in instance.gangs if other.priority < gang.priority}
        upper_placements = {name: groups for name, groups in outcome.placed.items() if name not in lower_gangs}
        if upper_placements.keys() != outcome.placed.keys() and _minimum_fits(
            instance, replace(outcome, placed=upper_placements), gang
        ):
            yield Breach("GS-28", gang.name, "waits, but would fit without gangs of lower priority that were placed")
        elif _fits_without_extras(instance, outcome, gang):
            yield Breach("OR-6", gang.name, "waits, but would fit if other gangs had no extra pods", "SHOULD")
    for gang in instance.gangs:
        if is_admitted(instance, outcome, gang) and _pending(instance, outcome, gang):
            for group in gang.groups:
                count = members(instance, outcome, gang.name, group.name).total()
                if count < group.desired and _fits(instance, outcome, gang, {group.name: 1}):
                    extra = count >= group.minimum
                    pending = f"{'an extra pod' if extra else 'a pod'} of {group.name} waits, although it fits"
                    yield Breach("GS-26", gang.name, pending, extra=extra)


def waiting_gangs(instance: Instance, outcome: SchedulingOutcome) -> list[Gang]:
    """Return the gangs that are below their minimum and whose pods are pending. Scaled gangs are included only once
    their base gang is is_admitted (OR-7)."""
    return [
        gang
        for gang in instance.gangs
        if not is_admitted(instance, outcome, gang)
        and _pending(instance, outcome, gang)
        and _is_base_admitted(instance, outcome, gang)
    ]


def certainly_fits(instance: Instance, outcome: SchedulingOutcome, breach: Breach) -> bool:
    """Return whether a gang that needlessly waits according to `breach` (GS-26, GS-28) fits regardless of how its pods
    are placed one by one, so that a scheduler needs no search to place it."""
    gang = instance.gang(breach.gang)
    if has_pair_demands(instance) or len(required_scopes(gang)) > 1:  # choosing outer domains is also a search
        return False
    if breach.rule == "GS-28":
        lower_gangs = {other.name for other in instance.gangs if other.priority < gang.priority}
        outcome = replace(outcome, placed={name: of for name, of in outcome.placed.items() if name not in lower_gangs})
    counts = {group.name: _lacking(instance, outcome, gang, group) for group in gang.groups}
    capacity, domains = free_capacity(instance, outcome), settled_domains(instance, outcome, gang)
    return surely_fits(instance, gang, counts, capacity, domains)


def _pending(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> bool:
    """Return whether the pods that a gang lacks exist. Pods of evicted gangs exist only if they were recreated."""
    if any(group.minimum > group.desired for group in gang.groups):
        return False
    has_lost_pods = any(pod.gang == gang.name and pod.name in outcome.evicted for pod in instance.running)
    return (outcome.recreated or not has_lost_pods) and _is_base_admitted(instance, outcome, gang)


def _costly_evictions(instance: Instance, outcome: SchedulingOutcome) -> Iterator[Breach]:
    """Yield breaches of the order in which victims must be chosen: pods above minimums before whole gangs, then lower
    priorities first (OR-8, GS-32)."""
    victims = [pod for pod in instance.running if pod.name in outcome.victims]
    bound = [gang for gang in instance.gangs if any(outcome.placed.get(gang.name, {}).values())]
    pending = [gang for gang in bound if gang.name not in {pod.gang for pod in instance.running}]
    if not victims or len(pending) != 1 or outcome.recreated:
        return
    gang = pending[0]
    essential_victims = [pod for pod in victims if not _above_its_minimum(instance, outcome, pod)]
    highest = max(instance.priority(pod) for pod in essential_victims or victims)
    if essential_victims and any(
        _minimum_fits(instance, spared, gang) for spared in _without_spares(instance, gang.priority)
    ):
        yield Breach("GS-32", gang.name, "evicted a gang where pods above minimums would have sufficed", "SHOULD")
    cheaper_outcomes = _without_spares(instance, highest)
    if essential_victims:
        lower_gangs = {
            pod.name for pod in instance.running if instance.priority(pod) < highest and pod.state == "running"
        }
        cheaper_outcomes = iter(
            [
                SchedulingOutcome(
                    evicted=frozenset(lower_gangs | {pod.name for pod in victims if pod not in essential_victims})
                )
            ]
        )
    if any(candidate.evicted and _minimum_fits(instance, candidate, gang) for candidate in cheaper_outcomes):
        yield Breach("GS-32", gang.name, "evicted pods of a higher priority than necessary", "SHOULD")


def _above_its_minimum(instance: Instance, outcome: SchedulingOutcome, pod: RunningPod) -> bool:
    """Return whether the group of an evicted pod still has its minimum without the pod."""
    group = next(
        (g for gang in instance.gangs if gang.name == pod.gang for g in gang.groups if g.name == pod.group), None
    )
    return group is not None and survivors(instance, outcome, pod.gang, pod.group).total() >= group.minimum


def _without_spares(instance: Instance, priority: int) -> Iterator[SchedulingOutcome]:
    """Yield every way to evict all pods above the minimums from gangs below a priority."""
    choices: list[list[tuple[str, ...]]] = []
    for gang in instance.gangs:
        for group in gang.groups if gang.priority < priority else ():
            group_pods = [
                p.name for p in instance.running if (p.gang, p.group) == (gang.name, group.name) and p.is_active
            ]
            if len(group_pods) > group.minimum:
                choices.append(list(combinations(group_pods, len(group_pods) - group.minimum)))
    for chosen_pods in product(*choices) if choices else ():
        yield SchedulingOutcome(evicted=frozenset(chain.from_iterable(chosen_pods)))


def _fits_without_extras(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> bool:
    """Return whether the gang's minimums fit if gangs of the same or lower priority give up their new extra pods."""
    choices: list[list[tuple[str, str, Mapping[str, int]]]] = []
    for other in instance.gangs:
        if other.priority <= gang.priority and is_admitted(instance, outcome, other):
            for group in other.groups:
                spread = outcome.of(other.name, group.name)
                bound_before = survivors(instance, outcome, other.name, group.name).total()
                surplus = min(sum(spread.values()), bound_before + sum(spread.values()) - group.minimum)
                if surplus > 0:
                    reductions = {tuple(sorted(part)) for part in _subsets(spread, sum(spread.values()) - surplus)}
                    choices.append([(other.name, group.name, dict(Counter(part))) for part in sorted(reductions)])
    for choice in product(*choices) if choices else ():
        placed = {name: dict(groups) for name, groups in outcome.placed.items()}
        for name, group_name, spread in choice:
            placed[name][group_name] = spread
        if _minimum_fits(instance, replace(outcome, placed=placed), gang):
            return True
    return False


def _subsets(spread: Mapping[str, int], size: int) -> Iterator[tuple[str, ...]]:
    return combinations(chain.from_iterable([node] * count for node, count in spread.items()), size)


def _minimum_fits(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> bool:
    """Return whether the pods that a gang lacks to reach its minimums fit alongside the outcome's placements."""
    lacking = {g.name: _lacking(instance, outcome, gang, g) for g in gang.groups}
    return _fits(instance, outcome, gang, lacking)


def _lacking(instance: Instance, outcome: SchedulingOutcome, gang: Gang, group: Group) -> int:
    return max(0, group.minimum - members(instance, outcome, gang.name, group.name).total())


def _fits(instance: Instance, outcome: SchedulingOutcome, gang: Gang, counts: Mapping[str, int]) -> bool:
    capacity, domains = free_capacity(instance, outcome), settled_domains(instance, outcome, gang)
    if not has_pair_demands(instance):
        return fits(instance, gang, counts, capacity, domains)
    return any(
        not any(chain(clashes(instance, extended), clashes_at_rest(instance, extended)))
        for spreads in distributions(instance, gang, counts, capacity, domains)
        for extended in [_with_pods(outcome, gang, spreads)]
    )


def _with_pods(outcome: SchedulingOutcome, gang: Gang, spreads: Mapping[str, Mapping[str, int]]) -> SchedulingOutcome:
    """Return an outcome with more pods of a gang."""
    groups = outcome.placed.get(gang.name, {})
    added = {group: Counter(groups.get(group, {})) + Counter(spread) for group, spread in spreads.items()}
    return replace(outcome, placed={**outcome.placed, gang.name: {**groups, **added}})


def settled_domains(instance: Instance, outcome: SchedulingOutcome, gang: Gang) -> dict[int, str]:
    """Return the domains of a gang's bound pods, by index of the required scope."""
    labels = {node.name: node.labels for node in instance.nodes}
    domains = {}
    for index, scope in enumerate(required_scopes(gang)):
        values = {
            labels.get(node, {}).get(scope.key, NO_DOMAIN)
            for group in scope.groups
            for node in members(instance, outcome, gang.name, group)
        }
        if values:
            domains[index] = values.pop() if len(values) == 1 else NO_DOMAIN
    return domains
