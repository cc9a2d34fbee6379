"""Mutants of the scheduler's planning, each with the specification's rules that it breaks and the ids of the
requirements that detect it. They are proved against the oracle (tests/scheduling/test_mutants.py) and, like all
mutants, on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any

import msgspec

from mutants.registry import mutant, name_of
from mutants.replacement import Original, around, instead_of, note_calls, replace, replace_unnoted
from reference_impl.scheduler import capacity, cycle, eligibility, placing, preemption
from reference_impl.scheduler.capacity import Capacity, Requests, Shape
from reference_impl.scheduler.cycle import Cycle, OtherPods, Plan
from reference_impl.scheduler.filters import node_affinity, taint_toleration
from reference_impl.scheduler.gang import ConstraintScope, Gang, Group
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.placing import Pending, Placement
from reference_impl.scheduler.preemption import Unit
from reference_impl.scheduler.search import Budget, Need, Restriction, Search
from reference_impl.scheduler.shortfall import Shortfall


@dataclass(frozen=True)
class PlacementMutant:
    """A mutant of the placement, with the oracle's rules that it breaks."""

    name: str
    text: str
    rules: tuple[str, ...]
    """The oracle must report at least one of these rules."""
    apply: Callable[[], None]


MUTANTS: list[PlacementMutant] = []


def breaks(text: str, *rules: str, caught_by: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a mutant of the planning. `caught_by` has the ids of requirements, separated by spaces."""

    def register(apply: Callable[[], None]) -> Callable[[], None]:
        MUTANTS.append(PlacementMutant(name_of(apply), text, rules, apply))
        return mutant("gang-scheduler", text, *caught_by.split())(apply)

    return register


# Order and minimums.


@breaks("processes gangs in their order of arrival", "GS-28", caught_by="SCHED-028")
@around(cycle, "plan")
def _priority_ignored(
    original: Original, gangs: Sequence[Gang], capacity: Capacity, other_pods: OtherPods | None = None
) -> Plan:
    return original([changed(gang, priority=0) for gang in gangs], capacity, other_pods)


@breaks("requires a pod of each group, even of those with a minimum of zero", "GS-26", caught_by="SCHED-066")
def _zero_minimum_counts() -> None:
    replace(Group, "missing_count", property(lambda self: max(0, max(1, self.minimum) - self.bound_count)))


@breaks("never considers a gang again once it has been placed", "GS-26", caught_by="SCHED-041 DEV-024")
def _lost_pod_stays_lost() -> None:
    original = cycle.place_minimum

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
        if not gang.members:
            return original(gang, capacity, result, budget)
        result.waiting[gang.name] = Shortfall("effort")
        return False

    def place_replacements(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> None:
        return None

    replace(cycle, "place_minimum", place_minimum)
    replace(cycle, "place_replacements", place_replacements)
    # It would place the replacement if the cycle places extra pods of another gang.
    replace_unnoted(cycle, "yield_extra_pods", lambda this: False)


@breaks("compares only the sum of the minimums of all groups", "GS-21", caught_by="SCHED-021")
@around(cycle, "place_minimum")
def _minimums_summed(original: Original, gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
    if original(gang, capacity, result, budget):
        return True
    mark, total, placements = capacity.mark(), sum(group.missing_count for group in gang.groups), list[Placement]()
    for index, pod in [(i, pod) for i, group in enumerate(gang.groups) for pod in group.waiting]:
        if (
            len(placements) < total
            and (placement := placing.place(gang, [(index, [pod])], capacity, budget)) is not None
        ):
            placements.append(placement)
    if len(placements) < total:
        capacity.undo(mark)
        return False
    for placement in placements:
        cycle.bind(gang, placement, capacity, result)
    return True


@breaks("never places a scaled gang", "GS-26", caught_by="SCHED-052")
def _scaled_never() -> None:
    replace(cycle, "base_scheduled", lambda gang, scheduled: not gang.base)


def place_extra_pods_early() -> None:
    """Give each gang its extra pods before the minimums of the gangs after it."""
    original = cycle.place_minimum

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
        placed = original(gang, capacity, result, budget)
        if placed:
            cycle.place_extra_pods(gang, capacity, result, budget)
        return placed

    replace(cycle, "place_minimum", place_minimum)


@breaks("gives a gang its extra pods before other gangs their minimums", "OR-6", caught_by="SCHED-051")
def _extras_early() -> None:
    place_extra_pods_early()
    replace(cycle, "yield_extra_pods", lambda this: False)


@breaks("counts no placed pod as an extra one in favor of a waiting gang", "OR-6", caught_by="SCHED-051")
def _extras_stay() -> None:
    replace(cycle, "yield_extra_pods", lambda this: False)


# Capacity.


@breaks("subtracts the capacity of each pod twice", "GS-26", caught_by="SCHED-026")
def _capacity_counted_twice() -> None:
    original = Capacity.take

    def take(self: Capacity, node: int, requests: Requests, count: int, pod: Pod | None = None) -> None:
        original(self, node, requests, 2 * count, pod)

    replace(Capacity, "take", take)
    # Also double the usage of pods that are already bound; otherwise the next cycle would correct the mistake.
    free = capacity._free_resources
    replace(
        capacity, "_free_resources", lambda node, used: free(node, {name: 2 * amount for name, amount in used.items()})
    )


@breaks("places one pod more on a node than fits", "OR-1", caught_by="SCHED-050")
def _capacity_overbooked() -> None:
    original = Shape._count

    def counted(self: Shape) -> dict[int, list[int]]:
        by_slots: dict[int, list[int]] = {}
        for node in self.eligible:
            by_slots.setdefault(self._count(node), []).append(node)
        return by_slots

    replace(Shape, "_count", lambda self, node: original(self, node) + 1)
    replace(Shape, "_nodes_by_slots", counted)


@breaks("ignores CPU and memory of pods that request GPUs", "OR-1", caught_by="SCHED-050")
@instead_of(Shape, "_count")
def _only_gpus_count(self: Shape, node: int) -> int:
    free = self._capacity.free[node]
    scarce_requests = [(r, a) for r, a in self.requests if r == self.scarce_resource]
    return max(0, min(free.get(resource, 0) // amount for resource, amount in scarce_requests))


@breaks("gives up if placing big pods first on the fullest nodes fails", "GS-26", caught_by="SCHED-075")
def _quick_only() -> None:
    replace(Search, "_search_exactly", lambda self, everywhere: False)


# Nodes and the pods that may run on them.


@breaks("places pods on tainted nodes", "OR-15", caught_by="SCHED-087")
def _taints_ignored() -> None:
    replace(taint_toleration, "tolerates", lambda pod, taints: True)


@breaks("ignores node selectors and node affinity", "OR-16", caught_by="SCHED-088")
def _selector_ignored() -> None:
    replace(node_affinity, "matches_node", lambda pod, node: True)


@breaks("places pods on cordoned nodes", "GS-42", caught_by="SCHED-042")
@around(eligibility, "eligible")
def _cordon_ignored(original: Original, pod: Pod, node: Node) -> bool:
    taints = [taint for taint in node.spec.taints or () if taint.key != "node.kubernetes.io/unschedulable"]
    spec = msgspec.structs.replace(node.spec, unschedulable=False, taints=taints)
    return original(pod, msgspec.structs.replace(node, spec=spec))


# Domains.


def _without(*, ignored: Callable[[Gang, ConstraintScope], bool]) -> None:
    """Ignore the constraints of the scopes for which `ignored` returns True."""
    original = placing.place

    def place(gang: Gang, requested: Pending, capacity: Capacity, budget: Budget) -> Placement | None:
        scopes = tuple(scope for scope in gang.scopes if not ignored(gang, scope))
        return original(changed(gang, scopes=scopes), requested, capacity, budget)

    replace(cycle, "place", place)


@breaks("ignores constraints of the whole gang", "GS-34", caught_by="TOPO-034")
def _gang_level_ignored() -> None:
    _without(ignored=lambda gang, scope: len(scope.groups) == len(gang.groups))


@breaks("ignores constraints of some of the groups", "GS-34", caught_by="TOPO-034")
def _config_level_ignored() -> None:
    _without(ignored=lambda gang, scope: 1 < len(scope.groups) < len(gang.groups))


@breaks("ignores constraints of single groups in a gang of several", "GS-34", caught_by="TOPO-036 TOPO-054")
def _group_level_ignored() -> None:
    _without(ignored=lambda gang, scope: len(scope.groups) == 1 < len(gang.groups))


@breaks("packs into the next wider domain than required", "GS-34", caught_by="TOPO-034 TOPO-050")
@around(placing, "restrictions")
def _wrong_level(original: Original, gang: Gang, needs: Sequence[Need], capacity: Capacity) -> list[Restriction] | None:
    wider = dict(zip(gang.levels[1:], gang.levels, strict=False))
    scopes = tuple(changed(scope, required=wider.get(scope.required, "")) for scope in gang.scopes)
    return original(changed(gang, scopes=scopes), needs, capacity)


@breaks("treats all nodes without the label as one domain", "GS-34", caught_by="TOPO-034")
def _no_label_is_a_domain() -> None:
    def values(self: Capacity, key: str) -> list[str]:
        return [node.metadata.label(key) or "none" for node in self.nodes]

    def domains(self: Capacity, key: str) -> dict[str, list[int]]:
        nodes: dict[str, list[int]] = {}
        for node, value in enumerate(values(self, key)):
            nodes.setdefault(value, []).append(node)
        return nodes

    replace(Capacity, "values", values)
    replace(Capacity, "domains", domains)


@breaks("chooses a new domain for extra pods and replacements", "GS-35", caught_by="TOPO-035")
def _domain_left() -> None:
    replace(placing, "settled_domains", lambda gang, scope, key, capacity: frozenset())


@breaks("gives up if the first promising domain does not suffice", "GS-26", caught_by="TOPO-036")
@around(Search, "_candidates")
def _first_domain_only(original: Original, self: Search, restriction: Restriction, allowed: list[Any]) -> Any:
    return list(original(self, restriction, allowed))[:1]


@breaks("lets a gang wait for its preferred domain", "GS-26", caught_by="TOPO-037")
def _preferred_is_required() -> None:
    original = placing.place

    def place(gang: Gang, requested: Pending, capacity: Capacity, budget: Budget) -> Placement | None:
        hard = tuple(ConstraintScope(s.groups, s.preferred) for s in gang.scopes if s.preferred)
        return original(changed(gang, scopes=gang.scopes + hard), requested, capacity, budget)

    replace(cycle, "place", place)
    replace(preemption, "place", place)


@breaks("ignores preferred domains", "OR-9", caught_by="TOPO-038")
def _preferred_ignored() -> None:
    original = placing.place

    def place(gang: Gang, requested: Pending, capacity: Capacity, budget: Budget) -> Placement | None:
        hard = tuple(changed(scope, preferred="") for scope in gang.scopes)
        return original(changed(gang, scopes=hard), requested, capacity, budget)

    replace(cycle, "place", place)


# Preemption.


@breaks("evicts only those pods of a gang that are in the way", "GS-31", caught_by="SCHED-031")
@around(preemption, "_whole_gang_units")
def _preempts_part(original: Original, lower: Sequence[Gang], gangs: Sequence[Gang], preemptor: Gang) -> list[Unit]:
    return [changed(unit, pods=(pod,)) for unit in original(lower, gangs, preemptor) for pod in unit.pods]


@breaks("evicts all pods of lower priority even if the gang does not fit then", "GS-30", caught_by="SCHED-030")
@around(preemption, "choose_victims")
def _preempts_in_vain(
    original: Original, gang: Gang, gangs: Sequence[Gang], other_pods: Any, capacity: Capacity, budget: Budget
) -> Any:
    result = original(gang, gangs, other_pods, capacity, budget)
    lower = [(p, n) for p, n in other_pods if p.spec.priority < gang.priority]
    return result or ([preemption.Eviction(p, n, gang.name) for p, n in lower], [])


@breaks("evicts gangs and pods of equal priority", "GS-30", caught_by="SCHED-030")
def _preempts_equals() -> None:
    original = preemption.choose_victims

    def choose(gang: Gang, gangs: Sequence[Gang], other_pods: Any, capacity: Capacity, budget: Budget) -> Any:
        return original(changed(gang, priority=gang.priority + 1), gangs, other_pods, capacity, budget)

    replace(preemption, "choose_victims", choose)
    original_init = Cycle.__init__

    def init(self: Cycle, gangs: Sequence[Gang], capacity: Capacity, other_pods: OtherPods) -> None:
        original_init(self, gangs, capacity, other_pods)
        self._lowest_priority -= 1

    replace(Cycle, "__init__", init)


@breaks("evicts everything of lower priority, needed or not", "GS-32", caught_by="SCHED-032")
def _preempts_all() -> None:
    def everything(gang: Gang, wholes: list[Unit], *rest: Any) -> tuple[Unit, ...]:
        return tuple(wholes)

    # Which of the two searches is called depends on the other gangs in the cycle.
    replace_unnoted(preemption, "_find_smallest_set", everything)
    replace_unnoted(preemption, "_find_minimal_set", everything)
    note_calls(preemption, "choose_victims")


@breaks("evicts higher priorities before lower ones", "GS-32", caught_by="SCHED-032")
def _preempts_higher_first() -> None:
    fewest, halving = preemption._find_smallest_set, preemption._find_minimal_set

    def turned(wholes: list[Unit]) -> list[Unit]:
        return [changed(unit, priority=-unit.priority) for unit in wholes]

    # As above, either search may be called.
    replace_unnoted(preemption, "_find_smallest_set", lambda gang, wholes, *rest: fewest(gang, turned(wholes), *rest))
    replace_unnoted(preemption, "_find_minimal_set", lambda gang, wholes, *rest: halving(gang, turned(wholes), *rest))
    note_calls(preemption, "choose_victims")


@breaks("evicts a whole gang where a pod above its minimum would suffice", "GS-32", caught_by="SCHED-032")
def _preempts_gangs_before_extras() -> None:
    replace(preemption, "_extra_pods", lambda lower: [])
