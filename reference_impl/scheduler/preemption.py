"""The choice of pods to evict in favor of a gang that does not fit. The pods have strictly lower priority and are
evicted in permitted units (GS-30 to GS-32).

A unit is a pod above the minimum of its group, a pod outside any gang, or a whole gang with its scaled gangs. Victims
are minimized: as few gangs as possible, with the lowest priorities, and then as few pods as possible. If the gang would
not fit anyway, nothing is evicted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from reference_impl.scheduler.capacity import Capacity, Requests
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.placing import Placement, needs_of, place
from reference_impl.scheduler.search import Budget

MAX_EXHAUSTIVE_UNITS, MAX_TRIES = 16, 400
"""With at most MAX_EXHAUSTIVE_UNITS units, up to MAX_TRIES sets of victims are tried one by one, those with the fewest
gangs first. With more units or tries, a minimal set is found by halving."""


@dataclass(frozen=True)
class Eviction:
    """A pod to evict, and the gang in whose favor it is evicted."""

    pod: Pod
    node: str
    preemptor: str
    gang: str = ""
    """The gang of the pod."""
    ends_gang: bool = False
    """Whether the whole gang is evicted."""


@dataclass(frozen=True)
class Unit:
    """Pods that can be evicted only as a unit."""

    pods: tuple[tuple[Pod, str, str], ...]
    """Pods with their nodes and their gangs."""
    priority: int
    gang_count: int
    """The number of gangs that the eviction ends: 0 for a pod above the minimum of its gang."""
    group: tuple[str, int] = ("", 0)
    """For a pod above the minimum: its gang and the index of its group."""

    @property
    def cost(self) -> tuple[bool, int, int]:
        """Sort key: pods above the minimum first, then units of lower priority, then larger units, of which fewer
        suffice."""
        return self.gang_count > 0, self.priority, -len(self.pods)


Chosen = tuple[list[Eviction], Placement]


def choose_victims(
    gang: Gang, gangs: Sequence[Gang], evictable: Sequence[tuple[Pod, str]], capacity: Capacity, budget: Budget
) -> Chosen | None:
    """Return the pods to evict for a gang and the gang's placement afterwards, and take and release capacity
    accordingly. Return None and leave the capacity unchanged if no eviction helps. `gangs` contains at least all gangs
    with bound pods."""
    lower_priority_gangs = [
        other for other in gangs if other.priority < gang.priority and other.members and other is not gang
    ]
    helpful_nodes = _helpful_nodes(gang, capacity)
    single_pod_units = [Unit(((pod, node, ""),), pod.spec.priority, 1) for pod, node in evictable]
    whole_gangs = [
        *_whole_gang_units(lower_priority_gangs, gangs, gang),
        *(unit for unit in single_pod_units if unit.priority < gang.priority),
    ]
    whole_gangs = [unit for unit in whole_gangs if _is_useful(unit, helpful_nodes, capacity)]
    extra_pods = [unit for unit in _extra_pods(lower_priority_gangs) if _is_useful(unit, helpful_nodes, capacity)]
    surplus = {
        (other.name, i): group.bound_count - group.minimum
        for other in lower_priority_gangs
        for i, group in enumerate(other.groups)
    }
    if _place(gang, (*whole_gangs, *extra_pods), capacity, budget, keep_capacity=False) is None:
        return None
    units = None
    if len(whole_gangs) + len(extra_pods) <= MAX_EXHAUSTIVE_UNITS:
        units = _find_smallest_set(gang, whole_gangs, extra_pods, surplus, capacity, budget)
    if units is None:
        units = _find_minimal_set(gang, whole_gangs, extra_pods, surplus, capacity, budget)
    placement = _place(gang, units, capacity, budget, keep_capacity=True)
    return None if placement is None else (_evictions(gang, units), placement)


def find_fitting_gangs(
    waiting: Iterable[Gang], gangs: Sequence[Gang], new_pod_uids: Collection[str], capacity: Capacity, budget: Budget
) -> list[Gang]:
    """Return the waiting gangs whose minimum would fit if all groups gave up all their extra pods in `new_pod_uids`.
    For all other gangs there is no need to call `choose_given_up_pods`, which is expensive with many extra pods."""
    extra_pods = [
        unit
        for unit in _extra_pods([g for g in gangs if g.minimum_reached])
        if unit.pods[0][0].metadata.uid in new_pod_uids
    ]
    if not extra_pods:
        return []
    mark = capacity.mark()
    for unit in extra_pods:
        for pod, node, _ in unit.pods:
            capacity.release(pod, node)
    fitting_gangs = [gang for gang in waiting if _place(gang, (), capacity, budget, keep_capacity=False) is not None]
    capacity.undo(mark)
    return fitting_gangs


def choose_given_up_pods(
    gang: Gang, gangs: Sequence[Gang], new_pod_uids: Collection[str], capacity: Capacity, budget: Budget
) -> tuple[set[str], Placement] | None:
    """Return the pods in `new_pod_uids` (placed in this cycle and not bound yet) that gangs of the same or lower
    priority give up so that the minimum of `gang` fits, and the resulting placement of `gang`, whose capacity is taken.
    Each of the other gangs keeps its own minimum. Return None and leave the capacity unchanged if that does not
    help."""
    donors = [
        other for other in gangs if other is not gang and other.priority <= gang.priority and other.minimum_reached
    ]
    extra_pods = [unit for unit in _extra_pods(donors) if unit.pods[0][0].metadata.uid in new_pod_uids]
    if not extra_pods or _place(gang, extra_pods, capacity, budget, keep_capacity=False) is None:
        return None
    surplus = {unit.group: 0 for unit in extra_pods}
    for other in donors:
        for i, group in enumerate(other.groups):
            surplus[(other.name, i)] = group.bound_count - group.minimum
    units = (
        _find_smallest_set(gang, [], extra_pods, surplus, capacity, budget)
        if len(extra_pods) <= MAX_EXHAUSTIVE_UNITS
        else None
    )
    if units is None:
        units = _find_minimal_set(gang, [], extra_pods, surplus, capacity, budget)
    placement = _place(gang, units, capacity, budget, keep_capacity=True)
    return None if placement is None else ({unit.pods[0][0].metadata.uid for unit in units}, placement)


def net_usage(capacity: Capacity, mark: int) -> list[tuple[int, Requests]]:
    """Return the capacity by node that was taken since `mark` minus the capacity that was released: this amount must be
    reserved from the free capacity."""
    total: dict[int, dict[str, int]] = {}
    for node, requests, count in capacity.taken_since(mark):
        node_amounts = total.setdefault(node, {})
        for resource, amount in requests:
            node_amounts[resource] = node_amounts.get(resource, 0) + amount * count
    positive = ((node, tuple((r, a) for r, a in node_amounts.items() if a > 0)) for node, node_amounts in total.items())
    return [(node, requests) for node, requests in positive if requests]


def remove_pods(gang: Gang, uids: set[str]) -> None:
    """Remove evicted pods from a gang."""
    for group in gang.groups:
        group.members = [(pod, node) for pod, node in group.members if pod.metadata.uid not in uids]


def _whole_gang_units(lower_priority_gangs: Sequence[Gang], gangs: Sequence[Gang], preemptor: Gang) -> Iterator[Unit]:
    for other in lower_priority_gangs:
        if preemptor.base == other.name:
            continue
        # A scaled gang is of no use without its base gang (GS-31).
        scaled = [g for g in gangs if g.base == other.name and g.members and g.priority < preemptor.priority]
        parts = [other, *(g for g in scaled if g is not other)]
        pods = tuple((pod, node, part.name) for part in parts for pod, node in part.members)
        yield Unit(pods, max(part.priority for part in parts), len(parts))


def _extra_pods(gangs: Sequence[Gang]) -> Iterator[Unit]:
    for other in gangs:
        for index, group in enumerate(other.groups):
            if group.bound_count > group.minimum:
                for pod, node in group.members:
                    yield Unit(((pod, node, other.name),), other.priority, 0, (other.name, index))


def _helpful_nodes(gang: Gang, capacity: Capacity) -> Collection[int]:
    """Return the nodes on which an eviction can help the gang: the nodes that its pods may use, or all nodes if the
    placement of its pods depends on other pods."""
    shapes = [need.shape for need in needs_of(gang, gang.pending_pods, capacity)]
    if any(shape.guard for shape in shapes):
        return range(len(capacity.nodes))
    return set().union(*(shape.eligible for shape in shapes))


def _is_useful(unit: Unit, nodes: Collection[int], capacity: Capacity) -> bool:
    return any(capacity.index.get(node, -1) in nodes for _, node, _ in unit.pods)


def _find_smallest_set(
    gang: Gang,
    whole_gangs: list[Unit],
    extra_pods: list[Unit],
    surplus: dict[tuple[str, int], int],
    capacity: Capacity,
    budget: Budget,
) -> tuple[Unit, ...] | None:
    """Return the set with the fewest gangs, then the lowest priorities, then the fewest pods, or None if the search
    takes too many tries."""
    tries = 0
    for count in range(len(whole_gangs) + 1):
        unit_sets = sorted(
            _take_first(combinations(sorted(whole_gangs, key=lambda unit: unit.priority), count)),
            key=lambda unit_set: (
                sum(u.gang_count for u in unit_set),
                sorted((u.priority for u in unit_set), reverse=True),
                _count_pods(unit_set),
            ),
        )
        for unit_set in unit_sets:
            ended_gangs = {name for unit in unit_set for _, _, name in unit.pods}
            spare_units = [unit for unit in extra_pods if unit.group[0] not in ended_gangs]
            tries += 1
            if tries > MAX_TRIES:
                return None
            if _place(gang, (*unit_set, *spare_units), capacity, budget, keep_capacity=False) is None:
                continue  # not even if all other gangs gave up every extra pod
            for size in range(len(spare_units) + 1):
                for chosen_extra_pods in sorted(
                    _take_first(combinations(spare_units, size)), key=lambda p: [u.priority for u in p]
                ):
                    if not _keeps_minimums(chosen_extra_pods, surplus):
                        continue
                    tries += 1
                    if tries > MAX_TRIES:
                        return None
                    if _place(gang, (*unit_set, *chosen_extra_pods), capacity, budget, keep_capacity=False) is not None:
                        return (*unit_set, *chosen_extra_pods)
    return None


def _take_first(unit_sets: Iterator[tuple[Unit, ...]]) -> list[tuple[Unit, ...]]:
    limited = []
    for unit_set in unit_sets:
        limited.append(unit_set)
        if len(limited) > MAX_TRIES:
            break
    return limited


def _keeps_minimums(part: Sequence[Unit], surplus: dict[tuple[str, int], int]) -> bool:
    """Return whether each group keeps its minimum."""
    return all(sum(unit.group == group for unit in part) <= surplus[group] for group in {u.group for u in part})


def _find_minimal_set(
    gang: Gang,
    whole_gangs: list[Unit],
    extra_pods: list[Unit],
    surplus: dict[tuple[str, int], int],
    capacity: Capacity,
    budget: Budget,
) -> tuple[Unit, ...]:
    """Return a sufficient set that has no sufficient proper subset, found in few tries. Units are sorted by cost, and
    costly units are dropped from the set first."""
    spare_units: list[Unit] = []
    remaining = dict(surplus)
    for unit in extra_pods:
        if remaining[unit.group] > 0:
            remaining[unit.group] -= 1
            spare_units.append(unit)
    units = [*sorted(spare_units, key=lambda u: u.cost), *sorted(whole_gangs, key=lambda u: u.cost)]

    def is_sufficient(chosen_units: Sequence[Unit]) -> bool:
        return _place(gang, chosen_units, capacity, budget, keep_capacity=False) is not None

    def find_needed_units(chosen_units: list[Unit], has_changed: bool, candidates: list[Unit]) -> list[Unit]:
        """Return a minimal part of `candidates` that suffices in combination with `chosen_units`, preferring cheap
        units."""
        if has_changed and is_sufficient(chosen_units):
            return []
        if len(candidates) <= 1:
            return candidates
        half = len(candidates) // 2
        cheap, costly = candidates[:half], candidates[half:]
        needed_costly = find_needed_units(chosen_units + cheap, bool(cheap), costly)
        needed_cheap = find_needed_units(chosen_units + needed_costly, bool(needed_costly), cheap)
        return needed_cheap + needed_costly

    sufficient = find_needed_units([], False, units)
    ended_gangs = {name for unit in sufficient if unit.gang_count for _, _, name in unit.pods}
    return tuple(unit for unit in sufficient if unit.gang_count or unit.group[0] not in ended_gangs)


def _place(
    gang: Gang, units: Sequence[Unit], capacity: Capacity, budget: Budget, *, keep_capacity: bool
) -> Placement | None:
    """Return the placement of the gang after the eviction of the units. Capacity changes only with `keep_capacity`."""
    mark = capacity.mark()
    released_uids: set[str] = set()
    for unit in units:
        for pod, node, _ in unit.pods:
            if pod.metadata.uid not in released_uids:
                released_uids.add(pod.metadata.uid)
                capacity.release(pod, node)
    budget.start_search()
    placement = place(gang, gang.pending_pods, capacity, budget)
    if not keep_capacity or placement is None:
        capacity.undo(mark)
    return placement


def _count_pods(units: Sequence[Unit]) -> int:
    return sum(len(unit.pods) for unit in units)


def _evictions(gang: Gang, units: Sequence[Unit]) -> list[Eviction]:
    evictions: dict[str, Eviction] = {}
    for unit in units:
        for pod, node, name in unit.pods:
            ends_gang = unit.gang_count > 0
            if pod.metadata.uid not in evictions or ends_gang:
                evictions[pod.metadata.uid] = Eviction(pod, node, gang.name, name, ends_gang)
    return list(evictions.values())
