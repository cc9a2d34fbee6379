"""Mutants of rolling updates."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.models import (
    CliqueTemplate,
    CliqueUpdateProgress,
    PodClique,
    PodCliqueSet,
    PodSelection,
    SetUpdateProgress,
)
from reference_impl.api.pods import Pod
from reference_impl.plan import (
    conditions,
    hashes,
    revisions,
    statuses,
    termination,
    timestamps,
    update_clique_pods,
    update_group_replicas,
    update_progress,
    update_set_replicas,
)
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.update_group_replicas import Replica


@mutant("operator", "deletes all old pods of a clique at once", "UPD-002")
def _all_pods_at_once() -> None:
    replace(update_clique_pods, "unready_pods", lambda old: list(old))


@mutant("operator", "ends the update of a clique with its last old pod", "UPD-046", "UPD-055")
@around(update_clique_pods, "_next_step")
def _clique_ends_early(
    original: Original,
    clique: PodClique,
    progress: CliqueUpdateProgress,
    members: list[Pod],
    current: revisions.Revision,
    now: str,
) -> update_clique_pods.CliqueUpdateStep:
    step = original(clique, progress, members, current, now)
    old = [pod for pod in members if pod.active and update_clique_pods.is_outdated(pod, current)]
    if step.progress and step.progress.update_ended_at is None and all(pod in step.unready_pods for pod in old):
        step.progress = update_progress.ended_progress(
            msgspec.structs.replace(step.progress, ready_pods_selected_to_update=None), now
        )
    return step


@mutant("operator", "replaces the youngest Ready pod first", "UPD-012")
@instead_of(update_clique_pods, "oldest_pod")
def _youngest_pod_first(ready: list[Pod]) -> Pod | None:
    return max(ready, key=lambda pod: pod.metadata.creation_timestamp or "", default=None)


@mutant("operator", "updates the replicas of a set from the last to the first", "UPD-053")
def _last_replica_first() -> None:
    replace(update_set_replicas, "turn_key", lambda cliques, index: (True, True, True, -index))


@mutant("operator", "updates all replicas of a set in parallel", "UPD-001", name="replicas-side-by-side")
def update_replicas_side_by_side() -> None:
    """Update all replicas of a set as soon as one of them is being updated."""
    replace(update_progress, "has_turn", lambda pcs, item: update_progress.current_replica(pcs) is not None)


@mutant("operator", "updates all cliques because of a change of one", "UPD-003")
@instead_of(revisions, "template_revision")
def _all_cliques_rolled(pcs: PodCliqueSet, template: CliqueTemplate, policy: Policy = STANDARD) -> revisions.Revision:
    template_hash = hashes.template_hashes(template, pcs.spec.template.priority_class_name, policy).written
    hash = (hashes.generation_hashes(pcs, policy).written[:5] + template_hash)[:10]
    return revisions.Revision(hash, frozenset({hash}))


@mutant("operator", "replaces only the changed cliques of a replica", "UPD-004", "UPD-005")
def _members_rolled_alone() -> None:
    original = update_group_replicas.deletion_waves
    replace(update_group_replicas, "deletion_waves", lambda doomed: original(doomed)[1:])


@mutant("operator", "recreates all old replicas of a group at once", "UPD-004")
def _group_replicas_at_once() -> None:
    replace(
        update_group_replicas, "unavailable_replicas", lambda replicas: [replica for replica in replicas if replica.old]
    )


@mutant("operator", "updates a group from its last replica to its first", "UPD-053")
@instead_of(update_group_replicas, "lowest_replica")
def _last_group_replica_first(ready: list[Replica]) -> Replica | None:
    return max(ready, key=lambda replica: replica.index, default=None)


def stepped(change: Any) -> None:
    """Pass every step of a set's update progress through `change(set, before, after, now)`."""
    original = update_set_replicas.advanced_progress

    def advanced(
        pcs: PodCliqueSet,
        progress: SetUpdateProgress,
        generation: str,
        cliques: update_set_replicas.ObservedSet,
        now: str,
    ) -> SetUpdateProgress:
        result: SetUpdateProgress = change(pcs, progress, original(pcs, progress, generation, cliques, now), now)
        return result

    replace(update_set_replicas, "advanced_progress", advanced)


@mutant("operator", "never reports the end of a set's update", "UPD-007")
def _update_never_ends() -> None:
    stepped(lambda pcs, before, after, now: msgspec.structs.replace(after, update_ended_at=None))


@mutant("operator", "leaves the last replica in the progress of a finished update", "UPD-007")
def _turn_never_over() -> None:
    def change(pcs: PodCliqueSet, before: SetUpdateProgress, after: SetUpdateProgress, now: str) -> SetUpdateProgress:
        turn = after.currently_updating or before.currently_updating
        return msgspec.structs.replace(after, currently_updating=turn)

    stepped(change)


@mutant("operator", "rewrites the start time of the update with each step", "UPD-006")
def _start_time_rewritten() -> None:
    stepped(lambda pcs, before, after, now: msgspec.structs.replace(after, update_started_at=now))


@mutant("operator", "counts the cliques of groups in the update counters", "UPD-054")
@around(update_set_replicas, "with_counts")
def _members_counted(
    original: Original, pcs: PodCliqueSet, progress: Any, generation: str, cliques: update_set_replicas.ObservedSet
) -> SetUpdateProgress:
    result = original(pcs, progress, generation, cliques)
    members = sum(len(list(cliques.members(index))) for index in range(pcs.spec.replicas))
    return msgspec.structs.replace(result, total_pod_cliques_count=result.total_pod_cliques_count + members)


@mutant("operator", "leaves the last selected pod in the progress of a finished update", "UPD-056")
@around(update_clique_pods, "step")
def _selection_kept(
    original: Original, pcs: Any, clique: Any, members: list[Pod], *rest: Any
) -> update_clique_pods.CliqueUpdateStep:
    result = original(pcs, clique, members, *rest)
    old = clique.status.update_progress if clique.status else None
    if result.progress is not None and old is not None and result.progress.update_ended_at is not None:
        selection = old.ready_pods_selected_to_update
        result.progress = msgspec.structs.replace(result.progress, ready_pods_selected_to_update=selection)
    return result


@mutant("operator", "reports no breach, instead of Unknown, during updates", "UPD-011")
def _breach_reported_in_updates() -> None:
    original = termination.breached_condition
    replace(statuses, "_updating_condition", lambda now: original(1, 1, 1, now))


@mutant("operator", "does not say after updates whether there is a breach", "UPD-057")
@around(statuses, "clique_status")
def _breach_stays_unknown(
    original: Original, clique: PodClique, members: list[Pod], pcs: PodCliqueSet | None, now: str, *rest: Any
) -> Any:
    status = original(clique, members, pcs, now, *rest)
    if status.update_progress is not None:
        status.conditions = conditions.with_condition(status.conditions, statuses._updating_condition(now))
    return status


@mutant("operator", "treats pods that are older than its process as outdated", "UPD-013")
@around(update_clique_pods, "is_outdated", memory=time.time)
def _restart_rolls_again(original: Original, start: float, pod: Pod, current: revisions.Revision) -> bool:
    created = timestamps.seconds(pod.metadata.creation_timestamp)
    return original(pod, current) or (created is not None and created < start - 1)


@mutant("operator", "reports another pod than the selected one", "UPD-010")
@around(update_clique_pods, "step", memory=dict)
def _selection_misnamed(
    original: Original, selections: dict[str, PodSelection], pcs: Any, clique: Any, members: list[Pod], *rest: Any
) -> update_clique_pods.CliqueUpdateStep:
    reported = clique.status.update_progress if clique.status else None
    if (
        reported is not None
        and reported.ready_pods_selected_to_update is not None
        and clique.metadata.uid in selections
    ):
        corrected = msgspec.structs.replace(reported, ready_pods_selected_to_update=selections[clique.metadata.uid])
        status = msgspec.structs.replace(clique.status, update_progress=corrected)
        clique = msgspec.structs.replace(clique, status=status)
    result = original(pcs, clique, members, *rest)
    selection = result.progress.ready_pods_selected_to_update if result.progress is not None else None
    if result.progress is not None and selection is not None:
        selections[clique.metadata.uid] = selection
        misnamed = PodSelection(current=clique.metadata.name, completed=selection.completed)
        result.progress = msgspec.structs.replace(result.progress, ready_pods_selected_to_update=misnamed)
    return result


@mutant("operator", "counts replicas of a group instead of its cliques", "UPD-008")
@around(statuses, "group_status")
def _group_counts_replicas(original: Original, group: Any, *rest: Any) -> Any:
    status = original(group, *rest)
    if status.update_progress is not None:
        total = max(group.spec.replicas, status.update_progress.updated_pod_cliques_count)
        progress = msgspec.structs.replace(status.update_progress, total_pod_cliques_count=total)
        status = msgspec.structs.replace(status, update_progress=progress)
    return status
