"""Additional evictions in what the gang scheduler has planned."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from reference_impl.scheduler.cycle import Plan
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.preemption import Eviction


def evict(plan: Plan, gangs: Iterable[Gang]) -> Plan:
    """Return the plan with evictions of all pods of these gangs that it does not bind."""
    bound = {pod.metadata.uid for pod, _ in plan.bindings}
    evictions = [
        Eviction(pod, node, gang.name, gang.name)
        for gang in gangs
        for pod, node in gang.members
        if pod.metadata.uid not in bound
    ]
    return dataclasses.replace(plan, evictions=[*plan.evictions, *evictions])
