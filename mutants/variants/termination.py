"""Variants of gang termination."""

from __future__ import annotations

import msgspec

from mutants.profiles import termination as wrong
from mutants.registry import variant
from mutants.replacement import alter
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
