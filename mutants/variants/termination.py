"""Variants of gang termination: its conditions, scope and causes."""

from __future__ import annotations

import time

import msgspec

from mutants.profiles import core_statuses
from mutants.profiles import termination as wrong
from mutants.registry import variant
from mutants.replacement import alter, on_result_of, replace
from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet, ScalingGroupStatus
from reference_impl.control.cache import BY_OWNER
from reference_impl.control.termination import Termination
from reference_impl.plan import conditions, statuses, termination
from reference_impl.plan.children import CliqueOf


@variant(
    "operator",
    "sets the condition of a termination to False, instead of removing it, when a group has recovered",
    "TERM-004",
    "TERM-005",
    "TERM-006",
)
@on_result_of(statuses, "group_status")
def _termination_reported_as_false(
    status: ScalingGroupStatus, group: PodCliqueScalingGroup, _: PodCliqueSet | None, __: CliqueOf, now: str
) -> ScalingGroupStatus:
    old = conditions.find(group.status.conditions if group.status else None, termination.TERMINATING)
    if old is None or conditions.find(status.conditions, termination.TERMINATING) is not None:
        return status
    changed_at = now if old.status == "True" else old.last_transition_time
    condition = msgspec.structs.replace(old, status="False", reason="Recovered", last_transition_time=changed_at)
    return msgspec.structs.replace(status, conditions=conditions.with_condition(status.conditions, condition))


@variant(
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
    "operator",
    "terminates single replicas of a scaling group that is breached, as the operator's README has it",
    "TERM-011",
    exempt=("TERM-023",),
)
def _single_replicas_terminated_as_well() -> None:
    wrong.act_on_both_levels()


@variant(
    "operator",
    "terminates the affected replicas of a breached scaling group alone, as the operator's README has it",
    "TERM-001",
    "TERM-004",
    "TERM-005",
    "TERM-006",
    "TERM-025",
    "TERM-026",
    exempt=("TERM-011", "TERM-012", "TERM-023"),
    conflict="the README's reading of the extent of a termination; another variant has the reading of both levels",
)
def _breached_groups_terminated_by_replicas() -> None:
    def group_acts(sound: int, group: PodCliqueScalingGroup, _: CliqueOf) -> int:
        return max(sound, group.spec.min_available)

    alter(termination, "count_sound_replicas", group_acts)
    replace(termination, "group_breached_since", lambda _: None)


@variant(
    "operator",
    "counts ready pods alone, as the comment of the condition has it",
    "CORE-017",
    "CORE-021",
    "TERM-015",
    exempt=("CORE-041", "TERM-024"),
    conflict="a set whose delay is a second is terminated while its pods start",
)
def _starting_pods_are_lost() -> None:
    core_statuses.count_ready_pods_only()


@variant(
    "operator",
    "terminates the gang of a breached standalone clique without scaled gangs, as the comment of PodClique has it",
    "TERM-001",
    "TERM-003",
    "TERM-006",
    exempt=("TERM-027",),
    conflict="others look at what the termination of a whole replica leaves",
)
def _gang_of_a_breached_clique_terminated() -> None:
    wrong.spare_scaled_gangs()


@variant(
    "operator",
    "terminates cliques with too few running pods alone, as the comment of terminationDelay has it",
    "TERM-001",
    "TERM-006",
    "TERM-015",
    "TERM-016",
    "TERM-017",
    "TERM-018",
    "TERM-019",
    "TERM-020",
    exempt=("TERM-013", "TERM-014", "TERM-026"),
    conflict="requirements of other profiles count pods that are not Ready",
)
@on_result_of(termination, "clique_breached_since")
def _running_pods_are_not_lost(breached_at: float | None, clique: PodClique) -> float | None:
    enough = clique.status is not None and clique.status.scheduled_replicas >= clique.spec.minimum
    return None if enough else breached_at


@variant(
    "operator",
    "terminates the replica of any breached PodClique, even one that never ran, as GREP-393 has it",
    "TERM-001",
    "TERM-003",
    "TERM-004",
    "TERM-005",
    "TERM-006",
    "TERM-025",
    exempt=("TERM-008", "TERM-010", "TERM-021"),
    conflict="replicas that wait for a node are terminated after the delay",
)
def _any_breach_terminates_the_replica() -> None:
    async def in_set(self: Termination, pcs: PodCliqueSet) -> float | None:
        groups = self._groups(pcs)
        owners = [pcs.metadata.uid, *(group.metadata.uid for group in groups)]
        cliques = [clique for uid in owners for clique in self._cache.cliques.indexed(BY_OWNER, uid)]
        due = termination.due_in_set(pcs, cliques, groups, time.time())
        suppressed = {
            termination.index_of(group)
            for group in groups
            if conditions.is_true(group.status.conditions if group.status else None, termination.TERMINATING)
        }
        for index in due.causes.keys() - suppressed:
            await self._terminate_replica(pcs, index, due.causes[index])
        return due.wait

    replace(Termination, "terminate_in_set", in_set)
    replace(termination, "due_in_group", lambda *_: termination.DueTerminations())
    replace(termination, "_has_changed", lambda *_: True)
