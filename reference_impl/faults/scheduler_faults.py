"""Faults of the gang scheduler."""

from __future__ import annotations

from reference_impl.faults import fault, replace
from reference_impl.scheduler import fit
from reference_impl.scheduler.scheduler import GangScheduler


@fault("partial-bind", "gang-scheduler", "binds as many pods of a gang as fit", "SCHED-001", "INV-003")
def _partial_bind() -> None:
    def place_floor(gang: fit.Gang, room: fit.Room, result: fit.Plan) -> bool:
        for group in gang.groups:
            for pod in group.waiting[: group.lacking]:
                if (node := room.take(pod)) is not None:
                    result.bindings.append((pod, node))
        return True

    replace(fit, "place_floor", place_floor)


@fault("gives-up", "gang-scheduler", "does not look at waiting gangs again when nodes appear", "SCHED-002")
def _gives_up() -> None:
    replace(GangScheduler, "_on_node", lambda self, kind, old, item: None)


@fault("extras-first", "gang-scheduler", "lets extra pods of a group take the room that other floors need", "SCHED-003")
def _extras_first() -> None:
    right = fit.place_floor

    def place_floor(gang: fit.Gang, room: fit.Room, result: fit.Plan) -> bool:
        begin = room.mark()
        extras = [pod for group in gang.groups for pod in group.waiting[group.lacking :]]
        early = [(pod, node) for pod in extras if (node := room.take(pod)) is not None]
        if not right(gang, room, result):
            room.undo(begin)
            return False
        result.bindings += early
        placed = {pod.metadata.uid for pod, _ in early}
        for group in gang.groups:
            group.waiting = [pod for pod in group.waiting if pod.metadata.uid not in placed]
        return True

    replace(fit, "place_floor", place_floor)


@fault("capacity-withheld", "gang-scheduler", "keeps the room of a gang that has to wait", "SCHED-004")
def _capacity_withheld() -> None:
    replace(fit.Room, "undo", lambda self, mark: None)


@fault("head-of-line", "gang-scheduler", "places nothing behind a gang that has to wait", "SCHED-005")
def _head_of_line() -> None:
    right = fit.place_floor
    blocked: dict[int, bool] = {}

    def place_floor(gang: fit.Gang, room: fit.Room, result: fit.Plan) -> bool:
        if blocked.get(id(room)):
            return False
        blocked.clear()
        placed = right(gang, room, result)
        blocked[id(room)] = not placed
        return placed

    replace(fit, "place_floor", place_floor)


@fault("extras-never", "gang-scheduler", "binds no pod beyond the floors", "SCHED-006")
def _extras_never() -> None:
    replace(fit, "place_extras", lambda gang, room, result: None)
