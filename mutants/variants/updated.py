"""Variants of rolling updates."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from mutants.profiles.update import update_replicas_side_by_side
from mutants.profiles.update_components import end_with_the_minimum
from mutants.registry import variant
from mutants.replacement import alter, on_result_of, replace
from reference_impl.api.models import PodCliqueSet, SetUpdateProgress
from reference_impl.plan import update_clique_pods, update_group_replicas, update_progress, update_set_replicas
from reference_impl.plan.update_group_replicas import Replica


@variant("operator", "clears the selected pod when an update restarts", "UPD-022", "UPD-023")
def _selection_cleared() -> None:
    replace(update_clique_pods, "carried_selection", lambda clique, old, members: None)


@variant("operator", "clears the selected replica of a group when an update restarts", "UPD-028")
def _selected_replica_cleared() -> None:
    replace(update_group_replicas, "carried_selection", lambda old, replicas: None)


@variant(
    "operator",
    "updates the replicas of a set from the last to the first, apart from unplaced and breached ones",
    *("UPD-001", "UPD-006", "UPD-029", "UPD-030", "UPD-031", "UPD-032", "UPD-033"),
    exempt=("UPD-053",),
)
def _last_replica_of_a_set_first() -> None:
    alter(update_set_replicas, "turn_key", lambda key, cliques, index: (*key[:-1], -index))


@variant(
    "operator",
    "updates all replicas of a set in parallel",
    *("UPD-031", "UPD-032", "UPD-034", "UPD-035"),
    exempt=("UPD-001", "UPD-029", "UPD-030", "UPD-033"),
    conflict="scenes of other requirements count the replicas that an update has reached",
)
def _set_replicas_together() -> None:
    update_replicas_side_by_side()


@variant(
    "operator",
    "recreates the available replicas of a group from the last to the first",
    *("UPD-004", "UPD-010", "UPD-025", "UPD-026", "UPD-027", "UPD-028"),
    exempt=("UPD-053",),
)
@on_result_of(update_group_replicas, "lowest_replica")
def _last_replica_of_a_group_first(chosen: Replica | None, ready: list[Replica]) -> Replica | None:
    return max(ready, key=lambda replica: replica.index, default=None)


@variant("operator", "deletes the next available replica of a group before those that are not available", "UPD-025")
@on_result_of(update_group_replicas, "_next_step")
def _available_replica_before_lost_ones(
    step: update_group_replicas.GroupUpdateStep, *rest: Any
) -> update_group_replicas.GroupUpdateStep:
    return update_group_replicas.GroupUpdateStep(step.progress, [*step.deletion_waves[2:], *step.deletion_waves[:2]])


@variant(
    "operator",
    "replaces the youngest Ready pod of a clique first",
    *("UPD-002", "UPD-005", "UPD-010", "UPD-016"),
    exempt=("UPD-012",),
)
def _youngest_pod_first() -> None:
    alter(
        update_clique_pods, "oldest_pod", lambda chosen, ready: max(ready, key=update_clique_pods.age_key, default=None)
    )


@variant(
    "operator",
    "selects a Ready pod only while all pods of its clique are Ready",
    *("UPD-014", "UPD-015", "UPD-016", "UPD-018", "UPD-021", "UPD-022"),
)
@on_result_of(update_clique_pods, "_next_step")
def _ready_pods_wait_for_all_others(
    step: update_clique_pods.CliqueUpdateStep, clique: Any, progress: Any, members: Any, *rest: Any
) -> Any:
    ready = sum(pod.ready for pod in members if pod.active)
    if step.selected is None or step.progress is progress or ready >= clique.spec.replicas:
        return step
    return update_clique_pods.CliqueUpdateStep(progress, step.unready_pods)


@variant(
    "operator",
    "replaces one old pod at a time, those that are not Ready first, and waits for its successor, as GREP-291 has it",
    *("UPD-015", "UPD-016", "UPD-017", "UPD-018", "UPD-021", "UPD-022"),
    exempt=("UPD-014",),
)
@on_result_of(update_clique_pods, "_next_step")
def _unready_pods_one_at_a_time(
    step: update_clique_pods.CliqueUpdateStep, clique: Any, progress: Any, members: Any, current: Any, _: Any
) -> update_clique_pods.CliqueUpdateStep:
    new = [pod for pod in members if pod.active and not update_clique_pods.is_outdated(pod, current)]
    if any(not pod.ready for pod in new):
        return update_clique_pods.CliqueUpdateStep(progress)
    return update_clique_pods.CliqueUpdateStep(progress, step.unready_pods[:1]) if step.unready_pods else step


@variant(
    "operator",
    "counts the cliques of groups in the update counters of a set",
    *("UPD-007", "UPD-008"),
    exempt=("UPD-054",),
)
@on_result_of(update_set_replicas, "with_counts")
def _members_counted_as_well(
    progress: SetUpdateProgress,
    pcs: PodCliqueSet,
    _: Any,
    generation: str,
    cliques: update_set_replicas.ObservedSet,
) -> SetUpdateProgress:
    indices = range(pcs.spec.replicas)
    groups = [group for index in indices for group in cliques.groups(index) if group is not None]
    members = [member for index in indices for member in cliques.members(index)]
    updated = sum(update_progress.is_updated(member, generation) for member in members)
    return msgspec.structs.replace(
        progress,
        updated_pod_cliques_count=progress.updated_pod_cliques_count + updated,
        total_pod_cliques_count=progress.total_pod_cliques_count
        + sum(group.spec.replicas * len(group.spec.clique_names) for group in groups),
    )


@variant(
    "operator",
    "leaves the last selected pod in the progress of a finished update",
    *("UPD-007", "UPD-010"),
    exempt=("UPD-056",),
)
@on_result_of(update_clique_pods, "step")
def _last_selection_kept(
    step: update_clique_pods.CliqueUpdateStep, pcs: Any, clique: Any, *rest: Any
) -> update_clique_pods.CliqueUpdateStep:
    old = clique.status.update_progress if clique.status else None
    if step.progress is None or old is None or update_progress.is_on_delete(pcs):
        return step
    if step.progress.update_ended_at is None or old.ready_pods_selected_to_update is None:
        return step
    selection = old.ready_pods_selected_to_update
    progress = msgspec.structs.replace(step.progress, ready_pods_selected_to_update=selection)
    return dataclasses.replace(step, progress=progress)


@variant(
    "operator",
    "ends the update of a clique with minAvailable Ready pods",
    *("UPD-050", "UPD-051"),
    exempt=("UPD-052",),
    conflict="scenes of other requirements wait for the end of an update and then count Ready pods",
)
def _ended_with_the_minimum() -> None:
    end_with_the_minimum()
