"""Faults of the gang scheduler."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.faults import fault, replace
from reference_impl.scheduler import rounds
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.room import Room
from reference_impl.scheduler.rounds import Plan, Surroundings
from reference_impl.scheduler.search import Budget
from reference_impl.scheduler.shortfall import Shortfall


@fault("partial-bind", "gang-scheduler", "binds as many pods of a gang as fit", "SCHED-001", "INV-003")
def _partial_bind() -> None:
    def place_floor(gang: Gang, room: Room, result: Plan, budget: Budget) -> bool:
        for index, pods in gang.lacking:
            for pod in pods:
                if (placement := place(gang, [(index, [pod])], room, budget)) is not None:
                    rounds.bind(gang, placement, room, result)
        return True

    replace(rounds, "place_floor", place_floor)


@fault("gives-up", "gang-scheduler", "does not look again at a gang that did not fit", "SCHED-002")
def _gives_up() -> None:
    # Not by what wakes the scheduler: events of other tests on the same cluster would wake it all the same.
    right, lost = rounds.plan, set[str]()

    def plan(gangs: Iterable[Gang], room: Room, around: Surroundings | None = None) -> Plan:
        result = right([gang for gang in gangs if gang.name not in lost], room, around)
        lost.update(name for name, lack in result.waiting.items() if lack.kind != "base")
        return result

    replace(rounds, "plan", plan)


@fault("extras-first", "gang-scheduler", "lets extra pods of a group take the room that other floors need", "SCHED-003")
def _extras_first() -> None:
    right = rounds.place_floor

    def place_floor(gang: Gang, room: Room, result: Plan, budget: Budget) -> bool:
        begin = room.mark()
        extras = [(i, pod) for i, group in enumerate(gang.groups) for pod in group.waiting[group.lacking :]]
        early = [p for i, pod in extras if (p := place(gang, [(i, [pod])], room, budget)) is not None]
        if not right(gang, room, result, budget):
            room.undo(begin)
            return False
        for placement in early:
            rounds.bind(gang, placement, room, result)
        return True

    replace(rounds, "place_floor", place_floor)


@fault("capacity-withheld", "gang-scheduler", "keeps the room of a gang that has to wait", "SCHED-004")
def _capacity_withheld() -> None:
    right = rounds.place_floor

    def place_floor(gang: Gang, room: Room, result: Plan, budget: Budget) -> bool:
        placed = right(gang, room, result, budget)
        for index, pods in gang.lacking:
            for pod in pods:
                place(gang, [(index, [pod])], room, budget)
        return placed

    replace(rounds, "place_floor", place_floor)


@fault("head-of-line", "gang-scheduler", "places nothing behind a gang that has to wait", "SCHED-005")
def _head_of_line() -> None:
    right = rounds.place_floor
    blocked: dict[int, bool] = {}

    def place_floor(gang: Gang, room: Room, result: Plan, budget: Budget) -> bool:
        if blocked.get(id(room)):
            result.waiting[gang.name] = Shortfall("effort")
            return False
        blocked.clear()
        placed = right(gang, room, result, budget)
        blocked[id(room)] = not placed
        return placed

    replace(rounds, "place_floor", place_floor)


@fault("extras-never", "gang-scheduler", "binds no pod beyond the floors", "SCHED-006")
def _extras_never() -> None:
    replace(rounds, "place_extras", lambda gang, room, result, budget: None)
