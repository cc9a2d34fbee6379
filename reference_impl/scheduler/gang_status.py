"""The part of a PodGang's status that the scheduler writes: the conditions Scheduled, Ready and DisruptionTarget, the
phase and the placement score (GS-F15, GS-F16, GS-F20, GS-33)."""

from __future__ import annotations

import msgspec

from reference_impl.api.models import Condition, PodGang, PodGangStatus
from reference_impl.plan import conditions
from reference_impl.plan.coherent import conditions as gang_conditions
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod

DISRUPTION = "DisruptionTarget"


def status(
    item: PodGang,
    gang: Gang,
    pods: dict[str, Pod],
    reason: str | None,
    now: str,
    *,
    preemptor: str = "",
    score: float | None = None,
) -> PodGangStatus:
    """Return the status of a gang after a scheduling cycle. `pods` holds the gang's pods by name, except terminating
    pods. `reason` is the reason why the minimum is not placed, `preemptor` is the gang in whose favor all pods are
    evicted, and `score` is the placement score."""
    old = item.status or PodGangStatus()
    scheduled = gang.minimum_reached
    ready = scheduled and all(
        sum((p := pods.get(ref.name)) is not None and p.ready for ref in group.pod_references) >= group.min_replicas
        for group in item.spec.podgroups
    )
    if scheduled:
        scheduled_condition = Condition(
            type="Scheduled", status="True", reason="MinimumPlaced", last_transition_time=now
        )
        scheduled_condition.message = "Every group has at least minReplicas pods bound"
    else:
        scheduled_condition = Condition(
            type="Scheduled", status="False", reason="Unschedulable", last_transition_time=now
        )
        scheduled_condition.message = reason or "waiting for pods"
    ready_condition = Condition(
        type="Ready",
        status="True" if ready else "False",
        reason="MinimumReady" if ready else "MinimumNotReady",
        message=f"{'Every' if ready else 'Not every'} group has at least minReplicas ready pods",
        last_transition_time=now,
    )
    merged = old.conditions
    if not gang_conditions.is_operator_written(item):
        merged = conditions.with_condition(conditions.with_condition(merged, scheduled_condition), ready_condition)
    if preemptor:
        text = f"All pods are evicted in favour of {preemptor}, which has a higher priority"
        merged = conditions.with_condition(merged, _disruption("True", "Preempted", text, now))
    elif scheduled and conditions.is_true(merged, DISRUPTION):
        merged = conditions.with_condition(
            merged, _disruption("False", "MinimumPlaced", "The gang is placed again", now)
        )
    return msgspec.structs.replace(
        old,
        phase="Running" if ready else "Starting" if scheduled else "Pending",
        conditions=merged,
        placement_score=score if scheduled else old.placement_score,
    )


def _disruption(value: str, reason: str, message: str, now: str) -> Condition:
    return Condition(type=DISRUPTION, status=value, reason=reason, message=message, last_transition_time=now)
