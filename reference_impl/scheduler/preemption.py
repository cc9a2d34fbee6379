"""Who has to go for a gang that does not fit: pods of strictly lower priority, in legal units (GS-30 to GS-32).

A unit is a pod above the minimum of its group, a pod of no gang, or a gang with all its pods and those of its scaled
gangs. As few gangs as possible are evicted, of the lowest priorities; then as few pods as possible; nobody without
need, and nobody at all where the gang would not fit anyhow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from reference_impl.scheduler.capacity import Capacity, Requests
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.placing import Placement, place
from reference_impl.scheduler.search import Budget

FEW, TRIES = 16, 400
"""Units up to which sets of victims are tried one by one, fewest gangs first, and how many sets; beyond that a minimal
set is found by halving."""


@dataclass(frozen=True)
class Eviction:
    """A pod that has to go, for which gang."""

    pod: Pod
    node: str
    preemptor: str
    gang: str = ""
    """The gang that it belongs to."""
    whole: bool = False
    """Whether all of that gang goes."""


@dataclass(frozen=True)
class Unit:
    """Pods that go together."""

    pods: tuple[tuple[Pod, str, str], ...]
    """Pod, node, gang."""
    priority: int
    gangs: int
    """How many gangs it ends: 0 for a pod above the minimum of its gang."""
    group: tuple[str, int] = ("", 0)
    """Of such a pod: its gang and the index of its group."""

    @property
    def cost(self) -> tuple[bool, int, int]:
        """Pods above minimums first, then low priorities, then big gangs, of which fewer will do."""
        return self.gangs > 0, self.priority, -len(self.pods)


Chosen = tuple[list[Eviction], Placement]


def choose(
    gang: Gang, gangs: Sequence[Gang], others: Sequence[tuple[Pod, str]], capacity: Capacity, budget: Budget
) -> Chosen | None:
    """The pods to evict for a gang and where it goes then, with its capacity taken and theirs given back; None, and the
    capacity as it was, where no eviction helps."""
    lower = [other for other in gangs if other.priority < gang.priority and other.members and other is not gang]
    wholes = [unit for unit in _wholes(lower, gangs, gang) if _useful(unit, capacity)]
    wholes += [
        Unit(((pod, node, ""),), pod.spec.priority, 1) for pod, node in others if pod.spec.priority < gang.priority
    ]
    extra_pods = list(_extra_pods(lower))
    surplus = {(other.name, i): group.bound - group.minimum for other in lower for i, group in enumerate(other.groups)}
    if _place(gang, (*wholes, *extra_pods), capacity, budget, keep=False) is None:
        return None
    found = None
    if len(wholes) + len(extra_pods) <= FEW:
        found = _fewest(gang, wholes, extra_pods, surplus, capacity, budget)
    if found is None:
        found = _halving(gang, wholes, extra_pods, surplus, capacity, budget)
    placement = _place(gang, found, capacity, budget, keep=True)
    return None if placement is None else (_evictions(gang, found), placement)


def hopeful(
    waiting: Iterable[Gang], gangs: Sequence[Gang], fresh: Collection[str], capacity: Capacity, budget: Budget
) -> list[Gang]:
    """The waiting gangs whose minimum would fit if every group with extra pods gave up all its `fresh` ones. For any
    other one, `yielding` need not be asked, which is dear where there are many extra pods."""
    extra_pods = [
        unit for unit in _extra_pods([g for g in gangs if g.minimum_reached]) if unit.pods[0][0].metadata.uid in fresh
    ]
    if not extra_pods:
        return []
    mark = capacity.mark()
    for unit in extra_pods:
        for pod, node, _ in unit.pods:
            capacity.release(pod, node)
    found = [gang for gang in waiting if _place(gang, (), capacity, budget, keep=False) is not None]
    capacity.undo(mark)
    return found


def yielding(
    gang: Gang, gangs: Sequence[Gang], fresh: Collection[str], capacity: Capacity, budget: Budget
) -> tuple[set[str], Placement] | None:
    """Which of the `fresh` pods (placed in this cycle, not bound yet) gangs of no higher priority give up, so that the
    minimum of a gang fits while each keeps its own minimum; and where the gang is placed then, with its capacity taken.
    None, with the capacity unchanged, if that does not help."""
    others = [
        other for other in gangs if other is not gang and other.priority <= gang.priority and other.minimum_reached
    ]
    extra_pods = [unit for unit in _extra_pods(others) if unit.pods[0][0].metadata.uid in fresh]
    if not extra_pods or _place(gang, extra_pods, capacity, budget, keep=False) is None:
        return None
    surplus = {unit.group: 0 for unit in extra_pods}
    for other in others:
        for i, group in enumerate(other.groups):
            surplus[(other.name, i)] = group.bound - group.minimum
    found = _fewest(gang, [], extra_pods, surplus, capacity, budget) if len(extra_pods) <= FEW else None
    if found is None:
        found = _halving(gang, [], extra_pods, surplus, capacity, budget)
    placement = _place(gang, found, capacity, budget, keep=True)
    return None if placement is None else ({unit.pods[0][0].metadata.uid for unit in found}, placement)


def net(capacity: Capacity, mark: int) -> list[tuple[int, Requests]]:
    """What was taken since `mark` and not released, by node: free capacity that has to be reserved."""
    total: dict[int, dict[str, int]] = {}
    for node, requests, count in capacity.since(mark):
        own = total.setdefault(node, {})
        for resource, amount in requests:
            own[resource] = own.get(resource, 0) + amount * count
    kept = ((node, tuple((r, a) for r, a in own.items() if a > 0)) for node, own in total.items())
    return [(node, requests) for node, requests in kept if requests]


def drop(gang: Gang, uids: set[str]) -> None:
    """Takes pods that have to go out of a gang."""
    for group in gang.groups:
        group.members = [(pod, node) for pod, node in group.members if pod.metadata.uid not in uids]


def _wholes(lower: Sequence[Gang], gangs: Sequence[Gang], preemptor: Gang) -> Iterator[Unit]:
    for other in lower:
        if preemptor.base == other.name:
            continue
        # Scaled gangs lose their reason with their base (GS-31).
        scaled = [g for g in gangs if g.base == other.name and g.members and g.priority < preemptor.priority]
        parts = [other, *(g for g in scaled if g is not other)]
        pods = tuple((pod, node, part.name) for part in parts for pod, node in part.members)
        yield Unit(pods, max(part.priority for part in parts), len(parts))


def _extra_pods(lower: Sequence[Gang]) -> Iterator[Unit]:
    for other in lower:
        for index, group in enumerate(other.groups):
            if group.bound > group.minimum:
                for pod, node in group.members:
                    yield Unit(((pod, node, other.name),), other.priority, 0, (other.name, index))


def _useful(unit: Unit, capacity: Capacity) -> bool:
    return any(node in capacity.index for _, node, _ in unit.pods)


def _fewest(
    gang: Gang,
    wholes: list[Unit],
    extra_pods: list[Unit],
    surplus: dict[tuple[str, int], int],
    capacity: Capacity,
    budget: Budget,
) -> tuple[Unit, ...] | None:
    """The set with the fewest gangs, then the lowest priorities, then the fewest pods; None where that takes too long
    to find."""
    tries = 0
    for count in range(len(wholes) + 1):
        ways = sorted(
            _limited(combinations(sorted(wholes, key=lambda unit: unit.priority), count)),
            key=lambda way: (sum(u.gangs for u in way), sorted((u.priority for u in way), reverse=True), _pods(way)),
        )
        for way in ways:
            ended = {name for unit in way for _, _, name in unit.pods}
            spare = [unit for unit in extra_pods if unit.group[0] not in ended]
            tries += 1
            if tries > TRIES:
                return None
            if _place(gang, (*way, *spare), capacity, budget, keep=False) is None:
                continue  # not even if the others gave more than they can
            for size in range(len(spare) + 1):
                for part in sorted(_limited(combinations(spare, size)), key=lambda p: [u.priority for u in p]):
                    if not _within(part, surplus):
                        continue
                    tries += 1
                    if tries > TRIES:
                        return None
                    if _place(gang, (*way, *part), capacity, budget, keep=False) is not None:
                        return (*way, *part)
    return None


def _limited(ways: Iterator[tuple[Unit, ...]]) -> list[tuple[Unit, ...]]:
    found = []
    for way in ways:
        found.append(way)
        if len(found) > TRIES:
            break
    return found


def _within(part: Sequence[Unit], surplus: dict[tuple[str, int], int]) -> bool:
    """Whether each group keeps its minimum."""
    return all(sum(unit.group == group for unit in part) <= surplus[group] for group in {u.group for u in part})


def _halving(
    gang: Gang,
    wholes: list[Unit],
    extra_pods: list[Unit],
    surplus: dict[tuple[str, int], int],
    capacity: Capacity,
    budget: Budget,
) -> tuple[Unit, ...]:
    """A set of which no part would do, in few tries. Units are in order of their cost; dear ones are spared first."""
    spare: list[Unit] = []
    left = dict(surplus)
    for unit in extra_pods:
        if left[unit.group] > 0:
            left[unit.group] -= 1
            spare.append(unit)
    units = [*sorted(spare, key=lambda u: u.cost), *sorted(wholes, key=lambda u: u.cost)]

    def enough(chosen: Sequence[Unit]) -> bool:
        return _place(gang, chosen, capacity, budget, keep=False) is not None

    def needed(given: list[Unit], changed: bool, among: list[Unit]) -> list[Unit]:
        """Of `among`, a smallest part that is enough together with `given`, cheap units before dear ones."""
        if changed and enough(given):
            return []
        if len(among) == 1:
            return among
        half = len(among) // 2
        cheap, dear = among[:half], among[half:]
        of_dear = needed(given + cheap, bool(cheap), dear)
        of_cheap = needed(given + of_dear, bool(of_dear), cheap)
        return of_cheap + of_dear

    found = needed([], False, units)
    ended = {name for unit in found if unit.gangs for _, _, name in unit.pods}
    return tuple(unit for unit in found if unit.gangs or unit.group[0] not in ended)


def _place(gang: Gang, units: Sequence[Unit], capacity: Capacity, budget: Budget, *, keep: bool) -> Placement | None:
    """Where the gang goes once the units are gone. Capacity is given back and taken only with `keep`."""
    mark = capacity.mark()
    released: set[str] = set()
    for unit in units:
        for pod, node, _ in unit.pods:
            if pod.metadata.uid not in released:
                released.add(pod.metadata.uid)
                capacity.release(pod, node)
    budget.begin()
    placement = place(gang, gang.lacking, capacity, budget)
    if not keep or placement is None:
        capacity.undo(mark)
    return placement


def _pods(units: Sequence[Unit]) -> int:
    return sum(len(unit.pods) for unit in units)


def _evictions(gang: Gang, units: Sequence[Unit]) -> list[Eviction]:
    found: dict[str, Eviction] = {}
    for unit in units:
        for pod, node, name in unit.pods:
            whole = unit.gangs > 0
            if pod.metadata.uid not in found or whole:
                found[pod.metadata.uid] = Eviction(pod, node, gang.name, name, whole)
    return list(found.values())
