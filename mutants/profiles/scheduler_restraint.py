"""Mutants of a gang scheduler that writes fields that belong to the operator, ends gangs on its own, or takes capacity
that is still in use."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import msgspec

from kube.resource import PODS
from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.api import models
from reference_impl.api.models import Condition, PodGangStatus
from reference_impl.plan import conditions, labels
from reference_impl.scheduler import cycle, gang_status, snapshot
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.cycle import OtherPods, Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.placing import place
from reference_impl.scheduler.preemption import Eviction
from reference_impl.scheduler.requests import Resources
from reference_impl.scheduler.scheduler import GangScheduler


@mutant("spec-of-gangs-written", "gang-scheduler", "notes in the spec of a PodGang that it was placed", "SCHED-069")
def _spec_of_gangs_written() -> None:
    original = GangScheduler._write_status

    async def write_status(self: GangScheduler, key: tuple[str, str]) -> None:
        await original(self, key)
        item = self._gangs.get(*key)
        if item is not None and self._gang(item).minimum_reached:
            body = {"spec": {"reuseReservationRef": {"namespace": key[0], "name": key[1]}}}
            await self._client.patch(models.PODGANGS, *key, body)

    replace(GangScheduler, "_write_status", write_status)


@mutant("health-of-gangs-written", "gang-scheduler", "says of gangs that wait that they are unhealthy", "SCHED-070")
def _health_of_gangs_written() -> None:
    original = gang_status.status

    def status(item: Any, gang: Gang, pods: Any, reason: str | None, now: str, **options: Any) -> PodGangStatus:
        result = original(item, gang, pods, reason, now, **options)
        value = "False" if gang.minimum_reached else "True"
        unhealthy = Condition(type="Unhealthy", status=value, reason="Waits", message="", last_transition_time=now)
        return msgspec.structs.replace(result, conditions=conditions.with_condition(result.conditions, unhealthy))

    replace(gang_status, "status", status)


@mutant("pods-relabelled", "gang-scheduler", "moves the pods that it binds to a clique of its own", "SCHED-071")
def _pods_relabelled() -> None:
    original = GangScheduler._bind

    async def bind(self: GangScheduler, pod: Pod, node: str) -> bool:
        bound = await original(self, pod, node)
        body = {"metadata": {"labels": {labels.PODCLIQUE: "placed"}}}
        await self._client.patch(PODS, *pod.metadata.key, body)
        return bound

    replace(GangScheduler, "_bind", bind)


@mutant("gates-removed", "gang-scheduler", "removes the gates of the pods of its gangs", "SCHED-072")
def _gates_removed() -> None:
    original = GangScheduler._cycle

    async def cycle_without_gates(self: GangScheduler) -> None:
        for pod in list(self._pods):
            is_scheduled_here = pod.metadata.label(labels.PODGANG) and pod.spec.scheduler_name == self._name
            if is_scheduled_here and pod.spec.scheduling_gates:
                await self._client.patch(PODS, *pod.metadata.key, {"spec": {"schedulingGates": None}})
        await original(self)

    replace(GangScheduler, "_cycle", cycle_without_gates)


@mutant("released-gangs-ended", "gang-scheduler", "evicts placed gangs whose minimums have become 0", "SCHED-073")
def _released_gangs_ended() -> None:
    original = cycle.plan

    def plan(gangs: Iterable[Gang], capacity: Capacity, other_pods: OtherPods | None = None) -> Plan:
        all_gangs = list(gangs)
        result = original(all_gangs, capacity, other_pods)
        bound = {pod.metadata.uid for pod, _ in result.bindings}
        released = [gang for gang in all_gangs if gang.members and not any(group.minimum for group in gang.groups)]
        evictions = [
            Eviction(pod, node, gang.name, gang.name)
            for gang in released
            for pod, node in gang.members
            if pod.metadata.uid not in bound
        ]
        return dataclasses.replace(result, evictions=[*result.evictions, *evictions])

    replace(cycle, "plan", plan)


@mutant(
    "torn-gangs-ended", "gang-scheduler", "evicts the pods that a running gang has left below its minimum", "SCHED-074"
)
def _torn_gangs_ended() -> None:
    original = cycle.plan

    def plan(gangs: Iterable[Gang], capacity: Capacity, other_pods: OtherPods | None = None) -> Plan:
        all_gangs = list(gangs)
        result = original(all_gangs, capacity, other_pods)
        bound = {pod.metadata.uid for pod, _ in result.bindings}
        evictions = [
            Eviction(pod, node, gang.name, gang.name)
            for gang in all_gangs
            if not gang.minimum_reached
            for pod, node in gang.members
            if pod.metadata.uid not in bound
        ]
        return dataclasses.replace(result, evictions=[*result.evictions, *evictions])

    replace(cycle, "plan", plan)


@mutant(
    "replicas-bound-in-part",
    "gang-scheduler",
    "binds a gang as soon as half of its groups have their minimum",
    "SCHED-077",
)
def _replicas_bound_in_part() -> None:
    original = cycle.place_minimum

    def place_minimum(gang: Gang, capacity: Capacity, result: Plan, budget: Any) -> bool:
        if original(gang, capacity, result, budget):
            return True
        half = gang.pending_pods[: len(gang.pending_pods) // 2]
        placement = place(gang, half, capacity, budget) if half else None
        if placement is None:
            return False
        cycle.bind(gang, placement, capacity, result)
        return True

    replace(cycle, "place_minimum", place_minimum)


@mutant("terminating-pods-free", "gang-scheduler", "counts no capacity for terminating pods", "SCHED-076")
def _terminating_pods_free() -> None:
    original = snapshot.used_resources

    def used_resources(pods: Iterable[Pod], assumed_nodes: dict[str, str]) -> dict[str, Resources]:
        return original([pod for pod in pods if pod.metadata.deletion_timestamp is None], assumed_nodes)

    replace(snapshot, "used_resources", used_resources)
