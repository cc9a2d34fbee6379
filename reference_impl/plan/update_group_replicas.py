"""The update of a scaling group, replica by replica (spec CHG-RU-30 to CHG-RU-37).

If one clique of a replica has an old template, the whole replica is replaced. Unavailable replicas are deleted at once.
Available replicas are replaced one at a time, the lowest index first, and the next replica only when all cliques of the
previous replica have enough Ready pods again. If `maxUnavailable` permits more, that many replicas are replaced at a
time (GM-103).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from reference_impl.api.models import (
    GroupUpdateProgress,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    ReplicaSelection,
)
from reference_impl.api.pods import Pod
from reference_impl.plan import labels, names, update_clique_pods, update_progress
from reference_impl.plan.children import CliqueOf
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.revisions import Revision

PodsOf = Callable[[PodClique], list[Pod]]


@dataclass
class GroupUpdateStep:
    """The next step of an update: the `progress` to write to the status, then the cliques to delete, in waves."""

    progress: GroupUpdateProgress | None
    deletion_waves: list[list[PodClique]] = field(default_factory=list)


@dataclass
class Replica:
    """The observed state of one replica of the scaling group."""

    index: int
    cliques: list[PodClique]
    """Existing cliques that are not terminating."""
    old: set[str]
    """The names of cliques that have an old template or pods with an old template."""
    ready: bool
    """Whether all cliques exist and have enough pods that are bound and Ready."""

    @property
    def updated(self) -> bool:
        """Whether the replica is ready and has no old cliques or pods."""
        return self.ready and not self.old


def step(
    pcs: PodCliqueSet,
    group: PodCliqueScalingGroup,
    clique: CliqueOf,
    pods_of: PodsOf,
    now: str,
    policy: Policy = STANDARD,
) -> GroupUpdateStep:
    """Return the next step of a scaling group's update. If there is nothing to do, the step has the current progress
    and no cliques."""
    old = group.status.update_progress if group.status else None
    if update_progress.is_on_delete(pcs):
        if update_progress.must_record_update(pcs, group, old):
            return GroupUpdateStep(update_progress.ended_progress(_started_progress(pcs, now), now))
        if old is not None and old.update_ended_at is None:
            old = update_progress.ended_progress(
                msgspec.structs.replace(old, ready_replica_indices_selected_to_update=None), now
            )
        return GroupUpdateStep(old)
    if not update_progress.has_turn(pcs, group):
        return GroupUpdateStep(old)
    if old is not None and update_progress.is_finished(old, update_progress.generation(pcs)):
        return GroupUpdateStep(old)
    replicas = [observe_replica(pcs, group, index, clique, pods_of, policy) for index in range(group.spec.replicas)]
    if old is None or old.pod_clique_set_generation_hash != update_progress.generation(pcs):
        selection = carried_selection(old, replicas)
        old = msgspec.structs.replace(_started_progress(pcs, now), ready_replica_indices_selected_to_update=selection)
    next_step = _next_step(group, old, replicas, now)
    next_step.deletion_waves += deletion_waves(
        additional_replicas(next_step, replicas, update_progress.group_budget(pcs, group))
    )
    return next_step


def additional_replicas(next_step: GroupUpdateStep, replicas: list[Replica], budget: int) -> list[Replica]:
    """Return the old available replicas that may be deleted in addition to the replicas that a step deletes, the lowest
    index first, so that at most `budget` of the desired replicas are unavailable, regardless of `minAvailable`
    (GM-103)."""
    deleted_names = {clique.metadata.name for wave in next_step.deletion_waves for clique in wave}
    remaining_replicas = [
        replica
        for replica in replicas
        if replica.ready and deleted_names.isdisjoint(clique.metadata.name for clique in replica.cliques)
    ]
    room = budget - (len(replicas) - len(remaining_replicas))
    return [replica for replica in remaining_replicas if replica.old][:room] if budget > 1 and room > 0 else []


def _started_progress(pcs: PodCliqueSet, now: str) -> GroupUpdateProgress:
    return GroupUpdateProgress(update_started_at=now, pod_clique_set_generation_hash=update_progress.generation(pcs))


def observe_replica(
    pcs: PodCliqueSet,
    group: PodCliqueScalingGroup,
    index: int,
    clique: CliqueOf,
    pods_of: PodsOf,
    policy: Policy = STANDARD,
) -> Replica:
    """Return the observed state of a replica of the scaling group."""
    members = [clique(names.member_clique(group.metadata.name, index, name)) for name in group.spec.clique_names]
    cliques = [member for member in members if member is not None and member.metadata.deletion_timestamp is None]
    old = {member.metadata.name for member in cliques if is_outdated(pcs, member, pods_of(member), policy)}
    ready = len(cliques) == len(members) and all(has_enough_ready_pods(member, pods_of(member)) for member in cliques)
    return Replica(index, cliques, old, ready)


def is_outdated(pcs: PodCliqueSet, clique: PodClique, pods: list[Pod], policy: Policy = STANDARD) -> bool:
    """Return whether a clique has an old template or, as OnDelete permits, pods with an old template (CHG-OD-07)."""
    return is_older(update_progress.revision(pcs, clique, policy), clique, pods)


def is_older(current: Revision | None, clique: PodClique, pods: list[Pod]) -> bool:
    """Return whether a clique or any of its pods does not have the current template, or False if there is no
    template."""
    if current is None:
        return False
    if not current.has(clique.metadata.label(labels.TEMPLATE_HASH)):
        return True
    return any(update_clique_pods.is_outdated(pod, current) for pod in pods if pod.active)


def has_enough_ready_pods(clique: PodClique, pods: list[Pod]) -> bool:
    """Return whether a clique has enough pods that are bound and Ready (CHG-RU-31)."""
    return sum(pod.scheduled and pod.ready for pod in pods if pod.active) >= update_progress.minimum(clique)


def carried_selection(old: GroupUpdateProgress | None, replicas: list[Replica]) -> ReplicaSelection | None:
    """Return the selection that a new update takes over from the interrupted one: the replica that is being
    replaced."""
    selection = old.ready_replica_indices_selected_to_update if old is not None and not old.update_ended_at else None
    if selection is None or selection.current >= len(replicas) or replicas[selection.current].ready:
        return None
    return ReplicaSelection(current=selection.current)


def _next_step(
    group: PodCliqueScalingGroup, progress: GroupUpdateProgress, replicas: list[Replica], now: str
) -> GroupUpdateStep:
    forced_replicas = unavailable_replicas(replicas)
    selection = progress.ready_replica_indices_selected_to_update
    if selection is not None and not is_selection_complete(selection, replicas):
        selected = [r for r in replicas if r.index == selection.current and r.old and r.ready]
        return GroupUpdateStep(progress, [*deletion_waves(forced_replicas), *deletion_waves(selected)])
    next_replica = lowest_replica([replica for replica in replicas if replica.old and replica.ready])
    has_minimum = sum(r.ready for r in replicas) >= min(group.spec.min_available, len(replicas))
    if next_replica is not None and has_minimum:
        completed = [*(selection.completed or ()), selection.current] if selection is not None else None
        selection = ReplicaSelection(current=next_replica.index, completed=completed)
        progress = msgspec.structs.replace(progress, ready_replica_indices_selected_to_update=selection)
        return GroupUpdateStep(progress, [*deletion_waves(forced_replicas), *deletion_waves([next_replica])])
    if all(replica.updated for replica in replicas):  # including the replicas above minAvailable (GM-106)
        progress = update_progress.ended_progress(
            msgspec.structs.replace(progress, ready_replica_indices_selected_to_update=None), now
        )
    return GroupUpdateStep(progress, deletion_waves(forced_replicas))


def unavailable_replicas(replicas: list[Replica]) -> list[Replica]:
    """Return the old replicas that are unavailable, which are deleted at once (CHG-RU-32)."""
    return [replica for replica in replicas if replica.old and not replica.ready]


def lowest_replica(ready: list[Replica]) -> Replica | None:
    """Return the old replica to replace next, which has the lowest index (CHG-RU-33), or None if there is none."""
    return min(ready, key=lambda replica: replica.index, default=None)


def is_selection_complete(selection: ReplicaSelection, replicas: list[Replica]) -> bool:
    """Return whether the selected replica is complete again or has been removed by scaling in (CHG-RU-65)."""
    return selection.current >= len(replicas) or replicas[selection.current].updated


def deletion_waves(deleted_replicas: list[Replica]) -> list[list[PodClique]]:
    """Return the cliques of these replicas as two lists to delete. The cliques that mark a replica as old are in the
    second list, so that a restarted operator still recognizes the replica as old."""
    cliques_with_age = [
        (clique, clique.metadata.name in replica.old) for replica in deleted_replicas for clique in replica.cliques
    ]
    return [[clique for clique, old in cliques_with_age if old is deletes_last] for deletes_last in (False, True)]
