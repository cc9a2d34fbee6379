"""Variants of gang termination."""

from __future__ import annotations

import msgspec

from mutants.profiles import core_statuses
from mutants.profiles import termination as wrong
from mutants.registry import variant
from mutants.replacement import alter, replace
from reference_impl.api.models import PodCliqueScalingGroup, PodCliqueSet, ScalingGroupStatus
from reference_impl.plan import conditions, statuses, termination
from reference_impl.plan.children import CliqueOf


@variant(
    "termination-reported-as-false",
    "operator",
    "sets the condition of a termination to False, instead of removing it, when a group has recovered",
    "TERM-004",
    "TERM-005",
    "TERM-006",
)
def _termination_reported_as_false() -> None:
    def group_status(
        status: ScalingGroupStatus, group: PodCliqueScalingGroup, _: PodCliqueSet | None, __: CliqueOf, now: str
    ) -> ScalingGroupStatus:
        old = conditions.find(group.status.conditions if group.status else None, termination.TERMINATING)
        if old is None or conditions.find(status.conditions, termination.TERMINATING) is not None:
            return status
        since = now if old.status == "True" else old.last_transition_time
        over = msgspec.structs.replace(old, status="False", reason="Recovered", last_transition_time=since)
        return msgspec.structs.replace(status, conditions=conditions.put(status.conditions, over))

    alter(statuses, "group_status", group_status)


@variant(
    "gangs-terminated-as-well",
    "operator",
    "has the gangs of a terminated replica recreated, as GREP-393 has it",
    "TERM-001",
    "TERM-003",
    "TERM-007",
    exempt=("TERM-022",),
)
def _gangs_terminated_as_well() -> None:
    wrong.terminate_gangs()


@variant(
    "single-replicas-terminated-as-well",
    "operator",
    "terminates single replicas of a scaling group that is breached, as the operator's README has it",
    "TERM-011",
    exempt=("TERM-023",),
)
def _single_replicas_terminated_as_well() -> None:
    wrong.act_on_both_levels()


@variant(
    "breached-groups-terminated-by-replicas",
    "operator",
    "terminates the affected replicas of a breached scaling group alone, as the operator's README has it",
    "TERM-001",
    "TERM-004",
    "TERM-005",
    "TERM-006",
    "TERM-025",
    "TERM-026",
    exempt=("TERM-011", "TERM-012", "TERM-023"),
    alone="the README's reading of the extent of a termination; another variant has the reading of both levels",
)
def _breached_groups_terminated_by_replicas() -> None:
    def group_acts(sound: int, group: PodCliqueScalingGroup, _: CliqueOf) -> int:
        return max(sound, group.spec.min_available)

    alter(termination, "sound_replicas", group_acts)
    replace(termination, "cause_of_group", lambda _: None)


@variant(
    "starting-pods-are-lost",
    "operator",
    "counts ready pods alone, as the comment of the condition has it",
    "CORE-017",
    "CORE-021",
    "TERM-015",
    exempt=("CORE-041", "TERM-024"),
    alone="a set whose delay is a second is terminated while its pods start",
)
def _starting_pods_are_lost() -> None:
    core_statuses.count_ready_pods_only()
