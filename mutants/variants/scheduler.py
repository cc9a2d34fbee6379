"""Variants of the gang scheduler with other messages, orders, scores and choices among equals, or with missing
features."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kube.client import Client
from kube.resource import Resource
from mutants.evictions import evict
from mutants.registry import variant
from mutants.replacement import Original, alter, around, instead_of, on_result_of, replace, replace_data
from reference_impl.api.models import Condition, PodGang, PodGangStatus
from reference_impl.plan import conditions
from reference_impl.scheduler import cycle, gang_status, preemption, scheduler, unschedulable
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import OtherPods, Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.preemption import Unit
from reference_impl.scheduler.scheduler import GangScheduler
from reference_impl.scheduler.search import Search
from reference_impl.scheduler.unschedulable import Unschedulable


@variant("gang-scheduler", "tells waiting pods another text", "SCHED-064", "SCHED-065", "SCHED-068")
@on_result_of(scheduler, "reasons")
def _gangs_wait_in_other_words(reasons: Iterable[tuple[Pod, str]], *arguments: Any) -> list[tuple[Pod, str]]:
    return [(pod, f"not yet: {reason}") for pod, reason in reasons]


@variant("gang-scheduler", "gives events about waiting pods a reason of its own", "SCHED-065")
def _events_of_another_reason() -> None:
    replace_data(unschedulable, "EVENT", "GangWaits", read_by=(Unschedulable, "_write"))


@variant("gang-scheduler", "posts events about pods, and none about PodGangs", "SCHED-065", "SCHED-054")
@instead_of(GangScheduler, "_post_event")
async def _gangs_without_events(self: GangScheduler, item: PodGang, note: str, reason: str = "") -> None:
    """Do nothing."""


@variant("gang-scheduler", "gives the conditions of PodGangs other reasons and messages", "SCHED-054", "SCHED-070")
@on_result_of(gang_status, "status")
def _gang_conditions_in_other_words(status: PodGangStatus, *arguments: Any, **options: Any) -> PodGangStatus:
    reworded_conditions = [
        condition
        if condition.type == "Initialized"
        else msgspec.structs.replace(condition, reason="AsPlanned", message=f"{condition.type} as planned")
        for condition in status.conditions or ()
    ]
    return msgspec.structs.replace(status, conditions=reworded_conditions)


@variant("gang-scheduler", "leaves the phase of PodGangs as it is", "SCHED-070")
@on_result_of(gang_status, "status")
def _gangs_without_phase(status: PodGangStatus, item: PodGang, *arguments: Any, **options: Any) -> PodGangStatus:
    return msgspec.structs.replace(status, phase=item.status.phase if item.status else "Pending")


@variant("gang-scheduler", "writes a condition of a type of its own on PodGangs", "SCHED-054", "SCHED-070")
@on_result_of(gang_status, "status")
def _condition_of_its_own(
    status: PodGangStatus, item: Any, gang: Any, pods: Any, reason: Any, now: str, **options: Any
) -> Any:
    condition = Condition("example.com/QuotaReserved", "True", "Reserved", "Quota is reserved", now)
    return msgspec.structs.replace(status, conditions=conditions.with_condition(status.conditions, condition))


@variant("gang-scheduler", "writes no placement score", "SCHED-070", "TOPO-038")
def _placements_unscored() -> None:
    alter(scheduler, "score", lambda result, *arguments: None)


@variant("gang-scheduler", "evicts gangs without a condition on them", "SCHED-030", "SCHED-031", "SCHED-054")
@on_result_of(gang_status, "status")
def _preempted_gangs_unmarked(status: PodGangStatus, *arguments: Any, **options: Any) -> PodGangStatus:
    rest: list[Condition] = [
        condition for condition in status.conditions or () if condition.type != gang_status.DISRUPTION
    ]
    return msgspec.structs.replace(status, conditions=rest)


@variant(
    "gang-scheduler",
    "binds the pods of a cycle in the reverse order",
    "SCHED-001",
    "SCHED-020",
    "SCHED-027",
    "SCHED-063",
    "INV-003",
)
@on_result_of(cycle, "plan")
def _pods_bound_in_another_order(plan: Plan, *arguments: Any) -> Plan:
    return dataclasses.replace(plan, bindings=plan.bindings[::-1])


@variant(
    "gang-scheduler",
    "prefers the last of several nodes that are equally good",
    "SCHED-006",
    "SCHED-020",
    "SCHED-022",
    "SCHED-026",
    "SCHED-052",
    "TOPO-034",
    "DEV-032",
)
@instead_of(scheduler, "Capacity")
def _last_node_first(nodes: Iterable[Node], used: Any, state: Any) -> Capacity:
    return Capacity(list(nodes)[::-1], used, state)


@variant(
    "gang-scheduler",
    "knows no base gangs: it places each gang whose pods have no gates",
    "SCHED-020",
    "SCHED-040",
    "SCHED-052",
    "SCHED-077",
)
def _scaled_gangs_in_any_order() -> None:
    replace(cycle, "base_scheduled", lambda gang, scheduled: True)


@variant("gang-scheduler", "keeps scaled gangs when it evicts their base gang", "SCHED-030", "SCHED-031", "SCHED-054")
@around(preemption, "_whole_gang_units")
def _scaled_gangs_outlive_base(
    original: Original, lower: Sequence[Gang], gangs: Sequence[Gang], preemptor: Gang
) -> list[Unit]:
    return list(original(lower, [dataclasses.replace(gang, base="") for gang in gangs], preemptor))


@variant("gang-scheduler", "notes the node on pods with the binding", "SCHED-071", "SCHED-063")
@around(Client, "create")
async def _bound_pods_annotated(
    original: Original, self: Client, resource: Resource, body: Any, *arguments: Any, **named: Any
) -> Any:
    if named.get("subresource") == "binding":
        annotations = {"example.com/placed-on": body["target"]["name"]}
        body = {**body, "metadata": {**body["metadata"], "annotations": annotations}}
    return await original(self, resource, body, *arguments, **named)


@variant(
    "gang-scheduler",
    "gives up if placing big pods first on the fullest nodes fails",
    "SCHED-020",
    "SCHED-021",
    "SCHED-022",
    "SCHED-026",
    "SCHED-027",
    exempt=("SCHED-075",),
    conflict="others would find less, too",
)
def _searches_no_further() -> None:
    replace(Search, "_place_exactly", lambda self, at, allowed: False)


@variant(
    "gang-scheduler",
    "reserves what a gang that waits could use of the free room",
    "SCHED-020",
    "SCHED-026",
    "SCHED-040",
    "SCHED-061",
    "SCHED-062",
    exempt=("SCHED-004", "SCHED-024", "SCHED-025"),
    conflict="others would wait, too",
)
@around(cycle, "place_minimum")
def _room_kept_for_large_gangs(original: Original, gang: Gang, capacity: Capacity, result: Plan, budget: Any) -> bool:
    placed = original(gang, capacity, result, budget)
    for index, pods in () if placed else gang.pending_pods:
        for pod in pods:
            place(gang, [(index, [pod])], capacity, budget)
    return placed


@variant(
    "gang-scheduler",
    "evicts the rest of a gang that has lost pods which nothing replaces, as GREP-393 lets schedulers do",
    "SCHED-030",
    "SCHED-031",
    "SCHED-042",
    exempt=("SCHED-074",),
    conflict="gangs would be ended that the operator terminates later",
)
@around(cycle, "plan")
def _gangs_below_minimum_ended(
    original: Original, gangs: Iterable[Gang], capacity: Capacity, other_pods: OtherPods | None = None
) -> Plan:
    all_gangs = list(gangs)
    result = original(all_gangs, capacity, other_pods)
    bound = {pod.metadata.uid for pod, _ in result.bindings}
    torn_gangs = (gang for gang in all_gangs if not gang.minimum_reached)
    unplaced_gangs = (gang for gang in torn_gangs if bound.isdisjoint(pod.metadata.uid for pod, _ in gang.members))
    return evict(result, unplaced_gangs)
