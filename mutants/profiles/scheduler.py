"""Mutants of the gang scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace, replace_unnoted
from reference_impl.runtime.clock import now
from reference_impl.scheduler import cycle, placing, preemption, unschedulable
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import OtherPods, Plan
from reference_impl.scheduler.gang import ConstraintScope, Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.placing import Placement, place
from reference_impl.scheduler.search import Budget
from reference_impl.scheduler.shortfall import Shortfall


@mutant(
    "gang-scheduler",
    "binds as many pods of a gang as fit",
    "SCHED-001",
    "INV-003",
    "SCHED-020",
    "SCHED-027",
    "SCHED-061",
    "SCHED-062",
)
@instead_of(cycle, "place_minimum")
def _partial_bind(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
    for index, pods in gang.pending_pods:
        for pod in pods:
            if (placement := place(gang, [(index, [pod])], capacity, budget)) is not None:
                cycle.bind(gang, placement, capacity, result)
    return True


@mutant("gang-scheduler", "never retries a gang that did not fit", "SCHED-002", "SCHED-043")
def _gives_up() -> None:
    # This does not depend on what wakes the scheduler, because events of other tests on the same cluster would wake it
    # anyway.
    original, lost = cycle.plan, set[str]()

    def plan(gangs: Iterable[Gang], capacity: Capacity, other_pods: OtherPods | None = None) -> Plan:
        result = original([gang for gang in gangs if gang.name not in lost], capacity, other_pods)
        lost.update(name for name, lack in result.waiting.items() if lack.kind != "base")
        return result

    replace(cycle, "plan", plan)


@mutant(
    "gang-scheduler",
    "lets extra pods of a group take capacity that other minimums need",
    "SCHED-003",
    "SCHED-022",
    "SCHED-063",
)
def _extras_first() -> None:
    original = cycle.place_minimum

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
        mark = capacity.mark()
        extra_pods = [(i, pod) for i, group in enumerate(gang.groups) for pod in group.waiting[group.missing_count :]]
        early = [p for i, pod in extra_pods if (p := place(gang, [(i, [pod])], capacity, budget)) is not None]
        if not original(gang, capacity, result, budget):
            capacity.undo(mark)
            return False
        for placement in early:
            cycle.bind(gang, placement, capacity, result)
        return True

    replace(cycle, "place_minimum", place_minimum)
    replace(cycle, "yield_extra_pods", lambda this: False)


@mutant("gang-scheduler", "reserves capacity for a gang that has to wait", "SCHED-004", "SCHED-024")
@around(cycle, "place_minimum")
def _capacity_withheld(original: Original, gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
    placed = original(gang, capacity, result, budget)
    for index, pods in gang.pending_pods:
        for pod in pods:
            place(gang, [(index, [pod])], capacity, budget)
    return placed


@mutant("gang-scheduler", "places nothing after a gang that has to wait", "SCHED-005", "SCHED-025")
def _head_of_line() -> None:
    original, blocked = cycle.place_minimum, dict[int, bool]()

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Budget) -> bool:
        if blocked.get(id(capacity)):
            result.waiting[gang.name] = Shortfall("effort")
            return False
        blocked.clear()
        placed = original(gang, capacity, result, budget)
        blocked[id(capacity)] = not placed
        return placed

    replace(cycle, "place_minimum", place_minimum)
    replace_unnoted(cycle, "yield_extra_pods", lambda this: False)  # it would place the gangs beside extra pods


@mutant("gang-scheduler", "binds no pods above the minimums", "SCHED-006", "SCHED-079")
def _extras_never() -> None:
    replace(cycle, "place_extra_pods", lambda gang, capacity, result, budget: None)


@mutant("gang-scheduler", "counts gated pods for the minimums", "SCHED-040")
def _gates_overlooked() -> None:
    replace(Pod, "waiting", property(lambda self: self.metadata.deletion_timestamp is None and not self.spec.node_name))


@mutant("gang-scheduler", "decides nothing while pods of a gang are missing", "SCHED-048")
@around(cycle, "plan")
def _stalled_by_missing_pods(
    original: Original, gangs: Iterable[Gang], capacity: Capacity, other_pods: OtherPods | None = None
) -> Plan:
    waiting = list(gangs)
    spaces = {gang.name.partition("/")[0] for gang in waiting if gang.incomplete}
    return original([gang for gang in waiting if gang.name.partition("/")[0] not in spaces], capacity, other_pods)


@mutant("gang-scheduler", "keeps all gangs in the domain of the first one", "TOPO-039", "TOPO-051")
def _domain_for_all() -> None:
    original, original_bind = placing.settled_domains, cycle.bind
    first: dict[tuple[str, str], frozenset[str]] = {}

    def family(gang: Gang, key: str) -> tuple[str, str]:
        """Return a key that the gangs of one set share. Their names differ only in replica and epoch or, in a scenario,
        in the last part."""
        return key, re.sub(r"-\d+-\d{10,}.*", "", gang.name).rstrip("0123456789xy").rstrip("-")

    def settled_domains(gang: Gang, scope: ConstraintScope, key: str, capacity: Capacity) -> frozenset[str]:
        return original(gang, scope, key, capacity) or first.get(family(gang, key), frozenset())

    def bind(gang: Gang, placement: Placement, capacity: Capacity, result: Plan) -> None:
        original_bind(gang, placement, capacity, result)
        for scope in gang.scopes:
            if scope.required:
                domains = original(gang, scope, scope.required, capacity)
                first.setdefault(family(gang, scope.required), domains)

    replace(placing, "settled_domains", settled_domains)
    replace(cycle, "bind", bind)


@mutant("gang-scheduler", "never preempts", "SCHED-054")
def _preempts_never() -> None:
    replace(preemption, "choose_victims", lambda gang, gangs, other_pods, capacity, budget: None)


@mutant("gang-scheduler", "does not tell pods why they wait", "SCHED-064", "SCHED-065")
def _pods_without_reason() -> None:
    replace(unschedulable.Unschedulable, "replace", lambda self, reasons: None)


@mutant("gang-scheduler", "tells a waiting pod the same reason in each cycle", "SCHED-068")
@around(unschedulable, "status_patch")
def _reason_repeated(original: Original, pod: Pod, reason: str) -> dict[str, Any] | None:
    pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=None))
    body = original(pod, reason)
    for condition in body["status"]["conditions"] if body else ():
        condition["lastProbeTime"] = now()
    return body
