"""The status of a PodGang whose set is or was updated coherently: the conditions Scheduled and Ready, and when they
became True (spec COH-086, COH-087)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from reference_impl.api.models import Condition, PodCliqueSet, PodGang, PodGangStatus
from reference_impl.api.pods import Pod
from reference_impl.plan import conditions
from reference_impl.plan.coherent import update
from reference_impl.plan.gangs import pods_by_clique

SCHEDULED = "Scheduled"
READY = "Ready"


def is_operator_written(gang: PodGang) -> bool:
    """Return whether the gang's Scheduled condition was written by the operator, in which case a scheduler must leave
    the conditions alone."""
    scheduled = conditions.find(gang.status.conditions if gang.status else None, SCHEDULED)
    return scheduled is not None and scheduled.reason in (f"PodGang{SCHEDULED}", f"PodGangNot{SCHEDULED}")


def operator_writes(pcs: PodCliqueSet, gang: PodGang) -> bool:
    """Return whether the operator writes the conditions of a gang. It does so for a set with the strategy Coherent,
    whose updates wait for these conditions, and continues if the set changes its strategy, because no scheduler writes
    them any more."""
    return update.is_coherent(pcs) or is_operator_written(gang)


def members(pcs: PodCliqueSet, gang_pods: list[Pod], has_clique: Callable[[Pod], bool]) -> list[Pod]:
    """Return the pods of a gang, and for a set with the strategy Coherent only pods whose clique exists. Pods without a
    clique are about to be deleted, and a gang that is recreated in the meantime must not count as scheduled because of
    them (COH-262)."""
    return [pod for pod in gang_pods if has_clique(pod)] if update.is_coherent(pcs) else gang_pods


def status(gang: PodGang, pods: Iterable[Pod], now: str) -> PodGangStatus:
    """Return the status of a gang with these pods. Scheduled requires `minReplicas` bound pods in each group, and Ready
    requires that many pods that are bound and Ready. The times are never removed: a gang that was once scheduled or
    Ready never holds back other gangs again (COH-Q13)."""
    old = gang.status or PodGangStatus()
    members, groups = pods_by_clique(pods, gang.metadata.name), gang.spec.podgroups
    group_pods = {group.name: members.get(group.name, []) for group in groups}
    scheduled = bool(groups) and all(
        sum(pod.scheduled for pod in group_pods[group.name]) >= group.min_replicas for group in groups
    )
    ready = scheduled and all(
        sum(pod.scheduled and pod.ready for pod in group_pods[group.name]) >= group.min_replicas for group in groups
    )
    merged = conditions.with_condition(old.conditions, _condition(SCHEDULED, scheduled, now))
    merged = conditions.with_condition(merged, _condition(READY, ready, now))
    return msgspec.structs.replace(
        old,
        phase=old.phase or "Pending",
        conditions=merged,
        last_scheduled=_transition_time(old.last_scheduled, old.conditions, SCHEDULED, scheduled, now),
        last_ready=_transition_time(old.last_ready, old.conditions, READY, ready, now),
    )


def _condition(condition_type: str, holds: bool, now: str) -> Condition:
    state = "bound" if condition_type == SCHEDULED else "Ready"
    return Condition(
        type=condition_type,
        status="True" if holds else "False",
        reason=f"PodGang{condition_type}" if holds else f"PodGangNot{condition_type}",
        message=f"{'Every' if holds else 'Not every'} group has enough {state} pods",
        last_transition_time=now,
    )


def _transition_time(
    stored_time: str | None, old: list[Condition] | None, condition_type: str, holds: bool, now: str
) -> str | None:
    """Return the time of the latest change to True. A gang that already had the condition before it belonged to a
    PodGangMap gets the current time."""
    return now if holds and (stored_time is None or not conditions.is_true(old, condition_type)) else stored_time
