"""Mutants that tear gangs apart, or place more pods on a node than fit."""

from __future__ import annotations

from mutants.profiles import scheduler_placement
from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.scheduler import cycle
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.search import Budget


@mutant("hopeless-group-skipped", "gang-scheduler", "skips a group none of whose pods fits anywhere", "SCHED-007")
def _hopeless_group_skipped() -> None:
    right = cycle.place_minimum

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
        hopeful = [(i, pods) for i, pods in gang.lacking if capacity.shape(pods[0]).total]
        if len(hopeful) == len(gang.lacking):
            return right(gang, capacity, result, budget)
        if (placement := place(gang, hopeful, capacity, budget)) is not None:
            cycle.bind(gang, placement, capacity, result)
        return placement is not None

    replace(cycle, "place_minimum", place_minimum)


@mutant(
    "groups-by-themselves",
    "gang-scheduler",
    "checks whether each group fits alone, not whether all fit together",
    "SCHED-008",
)
def _groups_by_themselves() -> None:
    right = cycle.place_minimum

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
        mark = capacity.mark()
        for index, pods in gang.lacking:
            alone = place(gang, [(index, pods)], capacity, budget)
            capacity.undo(mark)
            if alone is None:
                return right(gang, capacity, result, budget)
        for index, pods in gang.lacking:
            for pod in pods:
                if (placement := place(gang, [(index, [pod])], capacity, budget)) is not None:
                    cycle.bind(gang, placement, capacity, result)
        return True

    replace(cycle, "place_minimum", place_minimum)


def _on_a_cluster(name: str, planning: str, *caught_by: str) -> None:
    """Register for the suite a mutant of the planning that is also proved against the oracle."""
    [found] = [each for each in scheduler_placement.MUTANTS if each.name == planning]
    mutant(name, "gang-scheduler", found.text, *caught_by)(found.apply)


_on_a_cluster("equals-evicted", "preempts-equals", "INV-009")
_on_a_cluster("node-overbooked", "capacity-overbooked", "INV-010")
