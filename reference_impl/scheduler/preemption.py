"""Who has to go for a gang that does not fit: pods of strictly lower priority, in legal units (GS-30 to GS-32).

A unit is a pod above the floor of its group, a pod of no gang, or a gang with all its pods and those of its scaled
gangs. As few gangs as possible are evicted, of the lowest priorities; then as few pods as possible; nobody without
need, and nobody at all where the gang would not fit anyhow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from reference_impl.scheduler.capacity import Requests, Room
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
    """How many gangs it ends: 0 for a pod above the floor of its gang."""
    group: tuple[str, int] = ("", 0)
    """Of such a pod: its gang and the index of its group."""

    @property
    def cost(self) -> tuple[bool, int, int]:
        """Pods above floors first, then low priorities, then big gangs, of which fewer will do."""
        return self.gangs > 0, self.priority, -len(self.pods)


Chosen = tuple[list[Eviction], Placement]


def choose(
    gang: Gang, gangs: Sequence[Gang], others: Sequence[tuple[Pod, str]], room: Room, budget: Budget
) -> Chosen | None:
    """The pods to evict for a gang and where it goes then, with its room taken and theirs given back; None, and the
    room as it was, where no eviction helps."""
    lower = [other for other in gangs if other.priority < gang.priority and other.members and other is not gang]
    wholes = [unit for unit in _wholes(lower, gangs, gang) if _useful(unit, room)]
    wholes += [
        Unit(((pod, node, ""),), pod.spec.priority, 1) for pod, node in others if pod.spec.priority < gang.priority
    ]
    extras = list(_extras(lower))
    surplus = {(other.name, i): group.bound - group.floor for other in lower for i, group in enumerate(other.groups)}
    if _place(gang, (*wholes, *extras), room, budget, keep=False) is None:
        return None
    found = None
    if len(wholes) + len(extras) <= FEW:
        found = _fewest(gang, wholes, extras, surplus, room, budget)
    if found is None:
        found = _halving(gang, wholes, extras, surplus, room, budget)
    placement = _place(gang, found, room, budget, keep=True)
    return None if placement is None else (_evictions(gang, found), placement)


def hopeful(
    waiting: Iterable[Gang], gangs: Sequence[Gang], fresh: Collection[str], room: Room, budget: Budget
) -> list[Gang]:
    """The waiting gangs whose minimum would fit if every group with extra pods gave up all its `fresh` ones. For any
    other one, `yielding` need not be asked, which is dear where there are many extra pods."""
    extras = [unit for unit in _extras([g for g in gangs if g.floor_reached]) if unit.pods[0][0].metadata.uid in fresh]
    if not extras:
        return []
    mark = room.mark()
    for unit in extras:
        for pod, node, _ in unit.pods:
            room.release(pod, node)
    found = [gang for gang in waiting if _place(gang, (), room, budget, keep=False) is not None]
    room.undo(mark)
    return found


def yielding(
    gang: Gang, gangs: Sequence[Gang], fresh: Collection[str], room: Room, budget: Budget
) -> tuple[set[str], Placement] | None:
    """Which of the `fresh` pods (placed a moment ago, not bound yet) gangs of no higher priority give up, so that the
    minimum of a gang fits, each keeping its own minimum; and where the gang goes then, with its room taken. None, and
    the room as it was, where that does not help."""
    others = [other for other in gangs if other is not gang and other.priority <= gang.priority and other.floor_reached]
    extras = [unit for unit in _extras(others) if unit.pods[0][0].metadata.uid in fresh]
    if not extras or _place(gang, extras, room, budget, keep=False) is None:
        return None
    surplus = {unit.group: 0 for unit in extras}
    for other in others:
        for i, group in enumerate(other.groups):
            surplus[(other.name, i)] = group.bound - group.floor
    found = _fewest(gang, [], extras, surplus, room, budget) if len(extras) <= FEW else None
    if found is None:
        found = _halving(gang, [], extras, surplus, room, budget)
    placement = _place(gang, found, room, budget, keep=True)
    return None if placement is None else ({unit.pods[0][0].metadata.uid for unit in found}, placement)


def net(room: Room, mark: int) -> list[tuple[int, Requests]]:
    """What was taken since `mark` beyond what was given back, by node: the room that is free now and must be kept."""
    total: dict[int, dict[str, int]] = {}
    for node, requests, count in room.since(mark):
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


def _extras(lower: Sequence[Gang]) -> Iterator[Unit]:
    for other in lower:
        for index, group in enumerate(other.groups):
            if group.bound > group.floor:
                for pod, node in group.members:
                    yield Unit(((pod, node, other.name),), other.priority, 0, (other.name, index))


def _useful(unit: Unit, room: Room) -> bool:
    return any(node in room.index for _, node, _ in unit.pods)


def _fewest(
    gang: Gang,
    wholes: list[Unit],
    extras: list[Unit],
    surplus: dict[tuple[str, int], int],
    room: Room,
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
            spare = [unit for unit in extras if unit.group[0] not in ended]
            tries += 1
            if tries > TRIES:
                return None
            if _place(gang, (*way, *spare), room, budget, keep=False) is None:
                continue  # not even if the others gave more than they can
            for size in range(len(spare) + 1):
                for part in sorted(_limited(combinations(spare, size)), key=lambda p: [u.priority for u in p]):
                    if not _within(part, surplus):
                        continue
                    tries += 1
                    if tries > TRIES:
                        return None
                    if _place(gang, (*way, *part), room, budget, keep=False) is not None:
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
    """Whether each group keeps its floor."""
    return all(sum(unit.group == group for unit in part) <= surplus[group] for group in {u.group for u in part})


def _halving(
    gang: Gang,
    wholes: list[Unit],
    extras: list[Unit],
    surplus: dict[tuple[str, int], int],
    room: Room,
    budget: Budget,
) -> tuple[Unit, ...]:
    """A set of which no part would do, in few tries. Units are in order of their cost; dear ones are spared first."""
    spare: list[Unit] = []
    left = dict(surplus)
    for unit in extras:
        if left[unit.group] > 0:
            left[unit.group] -= 1
            spare.append(unit)
    units = [*sorted(spare, key=lambda u: u.cost), *sorted(wholes, key=lambda u: u.cost)]

    def enough(chosen: Sequence[Unit]) -> bool:
        return _place(gang, chosen, room, budget, keep=False) is not None

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


def _place(gang: Gang, units: Sequence[Unit], room: Room, budget: Budget, *, keep: bool) -> Placement | None:
    """Where the gang goes once the units are gone. Room is given back and taken only with `keep`."""
    mark = room.mark()
    released: set[str] = set()
    for unit in units:
        for pod, node, _ in unit.pods:
            if pod.metadata.uid not in released:
                released.add(pod.metadata.uid)
                room.release(pod, node)
    budget.begin()
    placement = place(gang, gang.lacking, room, budget)
    if not keep or placement is None:
        room.undo(mark)
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
