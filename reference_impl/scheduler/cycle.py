"""One scheduling cycle as a pure function: it takes the gangs and the free capacity, and returns bindings, evictions,
and the reasons why gangs wait.

The rules (spec GS-20 to GS-45):

- The minimums of all groups of a gang are placed as a whole or not placed. If a running gang has lost pods, each of its
  groups is placed separately.
- Gangs of higher priority come first.
- No extra pod is placed before the minimums of every gang have been tried.
- A waiting gang holds no capacity and blocks no other gang, except that capacity that preemption is freeing for the
  gang stays reserved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from reference_impl.scheduler import preemption
from reference_impl.scheduler.capacity import Capacity, Requests
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.placing import Placement, needs_of, place
from reference_impl.scheduler.preemption import Eviction
from reference_impl.scheduler.search import Budget
from reference_impl.scheduler.shortfall import Shortfall, explain_shortfall, refusals, shortfall_for_gang

Bound = tuple[Pod, str]
"""A pod and the name of its node."""


@dataclass
class Plan:
    """The decisions of a scheduling cycle."""

    bindings: list[Bound] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    waiting: dict[str, Shortfall] = field(default_factory=dict)
    """Gangs whose minimum cannot be placed, with the reason."""
    extra_pod_reasons: dict[str, str] = field(default_factory=dict)
    """Pods above the minimum of their gang (by uid) that wait for something other than capacity, with the reason."""
    reserved_for: list[str] = field(default_factory=list)
    """Gangs for which room is reserved because their search gave up."""
    nominated: dict[str, list[Bound]] = field(default_factory=dict)
    """Gangs that wait for evicted pods to terminate, with the nodes on which their pods will be placed."""


@dataclass
class OtherPods:
    """Pods on nodes that belong to no gang or are terminating, and the state of earlier cycles."""

    evictable: Sequence[Bound] = ()
    """Pods outside any gang that may be evicted."""
    terminating: Sequence[Bound] = ()
    """Terminating pods, which hold their capacity until they have ended."""
    preemptors: Collection[str] = ()
    """Gangs for which pods have been evicted."""
    overdue_gangs: Collection[str] = ()
    """Gangs whose search has been giving up for so long that room is no longer reserved for them."""


def plan(gangs: Iterable[Gang], capacity: Capacity, other_pods: OtherPods | None = None) -> Plan:
    """Decide one cycle. `gangs` holds all gangs, oldest first."""
    ordered_gangs = list(gangs)
    capacity.register(pod for gang in ordered_gangs for group in gang.groups for pod in group.waiting)
    ordered_gangs.sort(key=lambda gang: (-gang.priority, not gang.members))
    cycle = Cycle(ordered_gangs, capacity, other_pods or OtherPods())
    for gang in ordered_gangs:
        cycle.decide_gang(gang)
    for gang in cycle.depleted_gangs():
        place_replacements(gang, capacity, cycle.result, cycle.budget)
    for gang in cycle.scheduled:
        place_extra_pods(gang, capacity, cycle.result, cycle.budget)
    while yield_extra_pods(cycle):
        for gang in cycle.scheduled:
            place_extra_pods(gang, capacity, cycle.result, cycle.budget)
    return cycle.result


class Cycle:
    """The state of a scheduling cycle."""

    def __init__(self, gangs: Sequence[Gang], capacity: Capacity, other_pods: OtherPods) -> None:
        self.gangs, self.capacity, self.other_pods = gangs, capacity, other_pods
        self._evictable = list(other_pods.evictable)
        self.result = Plan()
        self.budget = Budget()
        self.scheduled: list[Gang] = []
        """Gangs whose minimum is placed, in the order in which their extra pods are placed."""
        self._scheduled_names: dict[str, bool] = {}
        self._scaled_gangs_by_base: dict[str, list[Gang]] = {}
        self._failures: dict[object, tuple[Gang, Shortfall]] = {}
        self._undecided_gangs: list[Gang] = []
        self._reserved_room: list[tuple[int, Requests]] = []
        self._positions = {gang.name: position for position, gang in enumerate(gangs)}
        self._occupied_positions = [position for position, gang in enumerate(gangs) if gang.members]
        """Sorted positions of the gangs that may have bound pods. There are few of them when most gangs are waiting."""
        self._lowest_priority = min(
            [gangs[position].priority for position in self._occupied_positions]
            + [pod.spec.priority for pod, _ in self._evictable],
            default=0,
        )

    def decide_gang(self, gang: Gang) -> None:
        """Place the minimum of a gang. Postpone a scaled gang until its base gang has been considered."""
        if gang.base in self._positions and gang.base not in self._scheduled_names and gang.base != gang.name:
            self._scaled_gangs_by_base.setdefault(gang.base, []).append(gang)
            return
        scheduled = self._decide(gang)
        self._scheduled_names[gang.name] = scheduled or bool(gang.members)
        if scheduled:
            self.scheduled.append(gang)
            self._note_occupied(gang)
        for scaled in self._scaled_gangs_by_base.pop(gang.name, ()):
            self.decide_gang(scaled)

    def _decide(self, gang: Gang) -> bool:
        if gang.incomplete:
            return False
        if not base_scheduled(gang, self._scheduled_names):
            if not gang.minimum_reached:
                self.result.waiting[gang.name] = Shortfall("base", domain=gang.base)
            return False
        if gang.minimum_reached:
            return True
        self._reserve_room(gang.priority)
        key = _equivalence_key(gang, self.capacity)
        if key in self._failures and gang.name not in self.other_pods.preemptors:  # capacity has only shrunk since
            example, shortfall = self._failures[key]
            self.result.waiting[gang.name] = shortfall_for_gang(shortfall, example, gang)
            return False
        self.budget.start_search()
        if place_minimum(gang, self.capacity, self.result, self.budget):
            return True
        kind = self.result.waiting[gang.name].kind
        undecided = kind == "effort" and gang.name not in self.other_pods.overdue_gangs
        if undecided:  # no pod is evicted for a gang that may fit without an eviction
            self._undecided_gangs.append(gang)
        if undecided or kind == "nominated" or self._fits_in_reserved_room(gang) or not self._clear_capacity(gang):
            self._failures[key] = (gang, self.result.waiting[gang.name])
        return False

    def _reserve_room(self, priority: int) -> None:
        """Reserve all free capacity of the nodes that could serve gangs of higher priority whose search gave up. It is
        not known whether these gangs fit, so gangs of lower priority must not take the capacity (GS-28)."""
        for gang in [gang for gang in self._undecided_gangs if gang.priority > priority]:
            self._undecided_gangs.remove(gang)
            self.result.reserved_for.append(gang.name)
            shapes = [need.shape for need in needs_of(gang, gang.pending_pods, self.capacity)]
            for node in sorted({node for shape in shapes for node, slots in shape.slots.items() if slots}):
                free = tuple((name, amount) for name, amount in self.capacity.free[node].items() if amount > 0)
                self.capacity.take(node, free, 1)
                self._reserved_room.append((node, free))

    def _fits_in_reserved_room(self, gang: Gang) -> bool:
        """Return whether a gang could be placed if no room were reserved for other gangs."""
        if not self._reserved_room:
            return False
        mark = self.capacity.mark()
        for node, free in self._reserved_room:
            self.capacity.take(node, free, -1)
        self.budget.start_search()
        fits = place(gang, gang.pending_pods, self.capacity, self.budget) is not None
        self.capacity.undo(mark)
        if fits:
            self.result.waiting[gang.name] = Shortfall("behind", domain=self.result.reserved_for[-1])
        return fits

    def _note_occupied(self, gang: Gang) -> None:
        position = self._positions[gang.name]
        insertion_point = bisect_left(self._occupied_positions, position)
        if self._occupied_positions[insertion_point : insertion_point + 1] != [position]:
            self._occupied_positions.insert(insertion_point, position)

    def depleted_gangs(self) -> list[Gang]:
        """Return the running gangs that are below their minimum and for which no pods are being evicted."""
        running_gangs = [
            g for g in self.gangs if g.members and not g.minimum_reached and g.name not in self.result.nominated
        ]
        return [gang for gang in running_gangs if base_scheduled(gang, self._scheduled_names)]

    def may_be_scheduled(self, gang: Gang) -> bool:
        """Return whether the gang has all pods of its minimum and its base gang, if any, is scheduled."""
        return not gang.incomplete and base_scheduled(gang, self._scheduled_names)

    def place_scaled_gang(self, gang: Gang) -> bool:
        """Place the minimum of a scaled gang whose base gang was placed out of turn, and return whether it fits. The
        binding of the base gang does not trigger another cycle that would place it."""
        self.budget.start_search()
        if not place_minimum(gang, self.capacity, self.result, self.budget):
            return False
        self.mark_scheduled(gang)
        return True

    def mark_scheduled(self, gang: Gang) -> None:
        """Record that a waiting gang has been placed after all."""
        del self.result.waiting[gang.name]
        self._scheduled_names[gang.name] = True
        self.scheduled.append(gang)

    def _clear_capacity(self, gang: Gang) -> bool:
        """Choose pods to evict in favor of the gang if the gang fits afterwards. Return whether capacity is now
        reserved for the gang."""
        if not gang.preempts:
            return False
        capacity, mark = self.capacity, self.capacity.mark()
        occupied = [self.gangs[position] for position in self._occupied_positions]
        for pod, node in self.other_pods.terminating:
            capacity.release(pod, node)
        placement = place(gang, gang.pending_pods, capacity, self.budget) if self.other_pods.terminating else None
        evictions: list[Eviction] = []
        if placement is None:
            # Terminating pods and evictions are not combined, because a pod that another client deleted may take
            # arbitrarily long to terminate. Victims are chosen as if the terminating pods stayed.
            capacity.undo(mark)
            if self._lowest_priority < gang.priority:
                chosen = preemption.choose_victims(gang, occupied, self._evictable, capacity, self.budget)
                evictions, placement = chosen or ([], None)
        reserved = preemption.net_usage(capacity, mark)
        capacity.undo(mark)
        if placement is None:
            return False
        node_names = {capacity.name(index) for _, index in placement}
        terminating_count = len(evictions) or sum(node in node_names for _, node in self.other_pods.terminating)
        self.result.waiting[gang.name] = Shortfall("leaving", needed=terminating_count)
        if not evictions and gang.name not in self.other_pods.preemptors:
            return False
        evicted_uids = {eviction.pod.metadata.uid for eviction in evictions}
        placed_uids = {pod.metadata.uid for pod, _ in self.result.bindings}
        self.result.bindings = [bound for bound in self.result.bindings if bound[0].metadata.uid not in evicted_uids]
        self.result.evictions += [e for e in evictions if e.pod.metadata.uid not in placed_uids]
        self.result.nominated[gang.name] = _with_node_names(placement, capacity)
        for index, requests in reserved:
            capacity.take(index, requests, 1)
        for pod, index in placement:  # filters treat the pod as placed
            capacity.take(index, (), 1, capacity.shape(pod).pod)
        for victim in occupied:
            if any(pod.metadata.uid in evicted_uids for pod, _ in victim.members):
                preemption.remove_pods(victim, evicted_uids)
                self._scheduled_names[victim.name] = bool(victim.members)
                if victim in self.scheduled and not victim.minimum_reached:
                    self.scheduled.remove(victim)
        self._evictable = [(pod, node) for pod, node in self._evictable if pod.metadata.uid not in evicted_uids]
        return True


def base_scheduled(gang: Gang, scheduled: dict[str, bool]) -> bool:
    """Return whether a gang has no base gang or its base gang is scheduled, so that the gang may be placed (GS-03). A
    base gang that runs and has lost pods counts as scheduled."""
    return not gang.base or scheduled.get(gang.base, False)


def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
    """Place all pods that the groups need to reach their minimums, or none. Return whether the minimums are now
    reached."""
    mark = capacity.mark()
    placement = place(gang, gang.pending_pods, capacity, budget)
    if placement is None:
        result.waiting[gang.name] = explain_shortfall(gang, capacity, exhausted=budget.exhausted)
        return False
    if (placement := _make_independent(placement, mark, gang, gang.pending_pods, capacity, result, budget)) is None:
        result.waiting[gang.name] = Shortfall("nominated")
        return False
    bind(gang, placement, capacity, result)
    return True


def place_replacements(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> None:
    """Place the pods that the groups of a running gang need to reach their minimums, group by group. The replacement of
    a lost pod therefore does not wait for a pod of another group that fits nowhere or does not exist yet."""
    for index, group in enumerate(gang.groups):
        if 0 < group.missing_count <= len(group.waiting):
            budget.start_search()
            placement = _place_pods(gang, index, group.waiting[: group.missing_count], capacity, result, budget)
            if placement is not None:
                bind(gang, placement, capacity, result)


def place_extra_pods(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> None:
    """Place pods above the minimums, one at a time, in the domains that the gang already uses (GS-35)."""
    for index, group in enumerate(gang.groups):
        refusals_by_shape: dict[int, str] = {}
        for pod in list(group.waiting):
            key = id(shape := capacity.shape(pod))
            if key not in refusals_by_shape:
                budget.start_search()
                placement = _place_pods(gang, index, [pod], capacity, result, budget) if shape.total else None
                if placement is not None:
                    bind(gang, placement, capacity, result)
                    continue
                refusals_by_shape[key] = refusals(gang, index, pod, capacity)
            if refusals_by_shape[key]:
                result.extra_pod_reasons[pod.metadata.uid] = (
                    f"no node takes more pods of {group.name}: {refusals_by_shape[key]}"
                )


def yield_extra_pods(cycle: Cycle) -> bool:
    """Place waiting gangs in the capacity of extra pods that this cycle has placed. Return whether any gang was placed.

    Extra pods come last, but a pod placed for the minimum may hold the only capacity that a waiting gang can use, while
    an extra pod of the same group was placed elsewhere; either of the two may count as the extra pod (OR-6).
    """
    waiting_gangs = [g for g in cycle.gangs if g.name in cycle.result.waiting and g.name not in cycle.result.nominated]
    gangs_by_key = {_equivalence_key(gang, cycle.capacity): gang for gang in waiting_gangs}
    fitting_gangs = preemption.find_fitting_gangs(
        gangs_by_key.values(), cycle.gangs, _placed_uids(cycle.result), cycle.capacity, cycle.budget
    )
    fitting_keys, any_placed = {_equivalence_key(gang, cycle.capacity) for gang in fitting_gangs}, False
    for gang in waiting_gangs:
        if not cycle.may_be_scheduled(gang):
            continue
        if cycle.result.waiting[gang.name].kind == "base" and cycle.place_scaled_gang(gang):
            any_placed = True
            continue
        if cycle.result.reserved_for or (key := _equivalence_key(gang, cycle.capacity)) not in fitting_keys:
            continue
        mark = cycle.capacity.mark()
        chosen = preemption.choose_given_up_pods(
            gang, cycle.gangs, _placed_uids(cycle.result), cycle.capacity, cycle.budget
        )
        given_up_uids, placement = chosen or (set(), [])
        bindings = [bound for bound in cycle.result.bindings if bound[0].metadata.uid not in given_up_uids]
        changed_bindings = [*bindings, *_with_node_names(placement, cycle.capacity)]
        if chosen is None or not _are_consistent(changed_bindings, cycle.capacity, cycle.result):
            cycle.capacity.undo(mark)
            fitting_keys.discard(key)  # a gang placed later in this pass may give up pods for it in the next pass
            continue
        cycle.result.bindings = bindings
        for other in cycle.gangs:
            for group in other.groups:
                group.waiting += [pod for pod, _ in group.members if pod.metadata.uid in given_up_uids]
            preemption.remove_pods(other, given_up_uids)
        bind(gang, placement, cycle.capacity, cycle.result)
        cycle.mark_scheduled(gang)
        any_placed = True
    return any_placed


def _place_pods(
    gang: Gang, group: int, pods: list[Pod], capacity: Capacity, result: Plan, budget: Budget
) -> Placement | None:
    """Place pods of one group in a way that does not depend on nominated pods, or return None if there is no such
    placement."""
    mark, needed = capacity.mark(), [(group, pods)]
    placement = place(gang, needed, capacity, budget)
    return placement and _make_independent(placement, mark, gang, needed, capacity, result, budget)


def _make_independent(
    placement: Placement,
    mark: int,
    gang: Gang,
    needed: Sequence[tuple[int, list[Pod]]],
    capacity: Capacity,
    result: Plan,
    budget: Budget,
) -> Placement | None:
    """Return the placement made since the mark, or another placement, that the filters accept both with and without the
    nominated pods, which may never be bound (kube-scheduler runs its filters twice for the same reason). If there is
    none, undo the placement and return None."""
    if not result.nominated or _are_consistent(_with_node_names(placement, capacity), capacity, result):
        return placement
    capacity.undo(mark)
    _count_nominated(capacity, result, -1)
    other_placement = place(gang, needed, capacity, budget)
    _count_nominated(capacity, result, 1)
    if other_placement is not None and _are_consistent(_with_node_names(other_placement, capacity), capacity, result):
        return other_placement
    capacity.undo(mark)
    return None


def _count_nominated(capacity: Capacity, result: Plan, count: int) -> None:
    """Show the nominated pods to the filters, or hide them if `count` is -1. Their capacity stays reserved."""
    for nominated in result.nominated.values():
        for pod, name in nominated:
            capacity.take(capacity.index[name], (), count, capacity.shape(pod).pod)


def _are_consistent(bindings: Sequence[Bound], capacity: Capacity, result: Plan) -> bool:
    """Return whether the filters accept each pod alongside all other pods, both with and without the nominated pods.
    Through affinity or topology spread, a pod's placement may depend on a pod that is given up later."""
    accepted = all(_is_accepted(pod, capacity.index[name], capacity) for pod, name in bindings)
    if not accepted or not result.nominated:
        return accepted
    mark = capacity.mark()
    _count_nominated(capacity, result, -1)
    accepted = all(_is_accepted(pod, capacity.index[name], capacity) for pod, name in bindings)
    capacity.undo(mark)
    return accepted


def _is_accepted(pod: Pod, node: int, capacity: Capacity) -> bool:
    """Return whether the filters accept a placed pod on its node."""
    shape, mark = capacity.shape(pod), capacity.mark()
    if shape.guard is None:
        return True
    capacity.take(node, shape.requests, -1, shape.pod)
    refusal = shape.guard.refusal(capacity.nodes[node])
    capacity.undo(mark)
    return not refusal


def _with_node_names(placement: Placement, capacity: Capacity) -> list[Bound]:
    return [(pod, capacity.name(node)) for pod, node in placement]


def _placed_uids(result: Plan) -> set[str]:
    """Return the pods (by uid) that this cycle has placed."""
    return {pod.metadata.uid for pod, _ in result.bindings}


def bind(gang: Gang, placement: Placement, capacity: Capacity, result: Plan) -> None:
    """Add a placement to the result and to the gang."""
    nodes = {pod.metadata.uid: name for pod, name in _with_node_names(placement, capacity)}
    for group in gang.groups:
        placed = [(pod, nodes[pod.metadata.uid]) for pod in group.waiting if pod.metadata.uid in nodes]
        if placed:
            group.members = group.members + placed
            group.waiting = [pod for pod in group.waiting if pod.metadata.uid not in nodes]
            result.bindings += placed


def _equivalence_key(gang: Gang, capacity: Capacity) -> object:
    """Return a key that is equal for gangs of which either all fit or none fits."""
    pods = tuple((i, tuple(id(capacity.shape(pod)) for pod in pods)) for i, pods in gang.pending_pods)
    members = tuple(tuple(node for _, node in group.members) for group in gang.groups) if gang.scopes else ()
    return pods, gang.scopes, members, gang.levels, gang.priority
