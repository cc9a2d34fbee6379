"""Mutants of a gang scheduler that writes fields that belong to the operator, ends gangs on its own, or takes capacity
that is still in use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kube.resource import PODS
from mutants.evictions import evict
from mutants.registry import mutant
from mutants.replacement import Original, around
from reference_impl.api import models
from reference_impl.api.models import Condition, PodGangStatus
from reference_impl.plan import conditions, labels
from reference_impl.scheduler import cycle, gang_status, snapshot
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import OtherPods, Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.requests import Resources
from reference_impl.scheduler.scheduler import GangScheduler


@mutant("gang-scheduler", "notes in the spec of a PodGang that it was placed", "SCHED-069")
@around(GangScheduler, "_write_status")
async def _spec_of_gangs_written(original: Original, self: GangScheduler, key: tuple[str, str]) -> None:
    await original(self, key)
    item = self._gangs.get(*key)
    if item is not None and self._gang(item).minimum_reached:
        body = {"spec": {"reuseReservationRef": {"namespace": key[0], "name": key[1]}}}
        await self._client.patch(models.PODGANGS, *key, body)


@mutant("gang-scheduler", "says of gangs that wait that they are unhealthy", "SCHED-070")
@around(gang_status, "status")
def _health_of_gangs_written(
    original: Original, item: Any, gang: Gang, pods: Any, reason: str | None, now: str, **options: Any
) -> PodGangStatus:
    result = original(item, gang, pods, reason, now, **options)
    value = "False" if gang.minimum_reached else "True"
    unhealthy = Condition(type="Unhealthy", status=value, reason="Waits", message="", last_transition_time=now)
    return msgspec.structs.replace(result, conditions=conditions.with_condition(result.conditions, unhealthy))


@mutant("gang-scheduler", "moves the pods that it binds to a clique of its own", "SCHED-071")
@around(GangScheduler, "_bind")
async def _pods_relabelled(original: Original, self: GangScheduler, pod: Pod, node: str) -> bool:
    bound = await original(self, pod, node)
    body = {"metadata": {"labels": {labels.PODCLIQUE: "placed"}}}
    await self._client.patch(PODS, *pod.metadata.key, body)
    return bound


@mutant("gang-scheduler", "removes the gates of the pods of its gangs", "SCHED-072")
@around(GangScheduler, "_cycle")
async def _gates_removed(original: Original, self: GangScheduler) -> None:
    for pod in list(self._pods):
        is_scheduled_here = pod.metadata.label(labels.PODGANG) and pod.spec.scheduler_name == self._name
        if is_scheduled_here and pod.spec.scheduling_gates:
            await self._client.patch(PODS, *pod.metadata.key, {"spec": {"schedulingGates": None}})
    await original(self)


@mutant("gang-scheduler", "evicts placed gangs whose minimums have become 0", "SCHED-073")
@around(cycle, "plan")
def _released_gangs_ended(
    original: Original, gangs: Iterable[Gang], capacity: Capacity, other_pods: OtherPods | None = None
) -> Plan:
    all_gangs = list(gangs)
    result = original(all_gangs, capacity, other_pods)
    return evict(result, (gang for gang in all_gangs if not any(group.minimum for group in gang.groups)))


@mutant("gang-scheduler", "evicts the pods that a running gang has left below its minimum", "SCHED-074")
@around(cycle, "plan")
def _torn_gangs_ended(
    original: Original, gangs: Iterable[Gang], capacity: Capacity, other_pods: OtherPods | None = None
) -> Plan:
    all_gangs = list(gangs)
    result = original(all_gangs, capacity, other_pods)
    return evict(result, (gang for gang in all_gangs if not gang.minimum_reached))


@mutant("gang-scheduler", "binds a gang as soon as half of its groups have their minimum", "SCHED-077")
@around(cycle, "place_minimum")
def _replicas_bound_in_part(original: Original, gang: Gang, capacity: Capacity, result: Plan, budget: Any) -> bool:
    if original(gang, capacity, result, budget):
        return True
    half = gang.pending_pods[: len(gang.pending_pods) // 2]
    placement = place(gang, half, capacity, budget) if half else None
    if placement is None:
        return False
    cycle.bind(gang, placement, capacity, result)
    return True


@mutant("gang-scheduler", "counts no capacity for terminating pods", "SCHED-076")
@around(snapshot, "used_resources")
def _terminating_pods_free(
    original: Original, pods: Iterable[Pod], assumed_nodes: dict[str, str]
) -> dict[str, Resources]:
    return original([pod for pod in pods if pod.metadata.deletion_timestamp is None], assumed_nodes)
