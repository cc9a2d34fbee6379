"""Faults that tear gangs apart, or put more on a node than there is room for."""

from __future__ import annotations

from reference_impl.faults import fault, placement_faults, replace
from reference_impl.scheduler import cycle
from reference_impl.scheduler.capacity import Room
from reference_impl.scheduler.cycle import Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.search import Budget


@fault("hopeless-group-skipped", "gang-scheduler", "leaves a group out of which no pod fits anywhere", "SCHED-007")
def _hopeless_group_skipped() -> None:
    right = cycle.place_floor

    def place_floor(gang: Gang, room: Room, result: Plan, budget: Budget) -> bool:
        hopeful = [(i, pods) for i, pods in gang.lacking if room.shape(pods[0]).total]
        if len(hopeful) == len(gang.lacking):
            return right(gang, room, result, budget)
        if (placement := place(gang, hopeful, room, budget)) is not None:
            cycle.bind(gang, placement, room, result)
        return placement is not None

    replace(cycle, "place_floor", place_floor)


@fault("groups-by-themselves", "gang-scheduler", "asks whether each group fits, and not whether all do", "SCHED-008")
def _groups_by_themselves() -> None:
    right = cycle.place_floor

    def place_floor(gang: Gang, room: Room, result: Plan, budget: Budget) -> bool:
        mark = room.mark()
        for index, pods in gang.lacking:
            alone = place(gang, [(index, pods)], room, budget)
            room.undo(mark)
            if alone is None:
                return right(gang, room, result, budget)
        for index, pods in gang.lacking:
            for pod in pods:
                if (placement := place(gang, [(index, [pod])], room, budget)) is not None:
                    cycle.bind(gang, placement, room, result)
        return True

    replace(cycle, "place_floor", place_floor)


def _on_a_cluster(name: str, planning: str, *caught_by: str) -> None:
    """Registers a fault of the planning, which is proved against the oracle, for the suite, too."""
    [found] = [each for each in placement_faults.FAULTS if each.name == planning]
    fault(name, "gang-scheduler", found.text, *caught_by)(found.apply)


_on_a_cluster("equals-evicted", "preempts-equals", "INV-009")
_on_a_cluster("node-overbooked", "room-overbooked", "INV-010")
