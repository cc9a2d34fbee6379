"""Template updates: the parts that all three levels share (CHG-RU-01 to CHG-RU-72, CHG-OD-01 to CHG-OD-09).

A set is updated replica by replica (`update_set_replicas`). In the replica whose turn it is, all standalone cliques are
updated pod by pod (`update_clique_pods`) and all scaling groups replica by replica (`update_group_replicas`),
concurrently. Each level writes its `status.updateProgress` before it acts, so that a restarted operator continues.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from reference_impl.api.coherent import RollingUpdate
from reference_impl.api.models import (
    CliqueUpdateProgress,
    GroupUpdateProgress,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    SetUpdateProgress,
    UpdateStrategyType,
)
from reference_impl.plan import labels, revisions, timestamps
from reference_impl.plan.children import clique_template, group_config
from reference_impl.plan.hashing.window import STANDARD, Policy

IN_PROGRESS = "UpdateInProgress"
"""Reason of MinAvailableBreached=Unknown during an update (CHG-GT-01, CHG-GT-11)."""

Progress = TypeVar("Progress", SetUpdateProgress, CliqueUpdateProgress, GroupUpdateProgress)
OwnProgress = TypeVar("OwnProgress", CliqueUpdateProgress, GroupUpdateProgress)


def strategy(pcs: PodCliqueSet) -> UpdateStrategyType | None:
    """Return the update strategy of a set, or None if the set names none."""
    return pcs.spec.update_strategy.type if pcs.spec.update_strategy else None


def is_on_delete(pcs: PodCliqueSet) -> bool:
    """Return whether the update strategy is OnDelete, with which an update deletes nothing (CHG-RU-06)."""
    return strategy(pcs) == UpdateStrategyType.ON_DELETE


def set_progress(pcs: PodCliqueSet) -> SetUpdateProgress | None:
    """Return the update progress of a set, or None if it has none."""
    return pcs.status.update_progress if pcs.status else None


def generation(pcs: PodCliqueSet) -> str:
    """Return the generation hash in the status of the set, or an empty string if there is none."""
    return (pcs.status.current_generation_hash if pcs.status else None) or ""


def revision(pcs: PodCliqueSet, clique: PodClique, policy: Policy = STANDARD) -> revisions.Revision | None:
    """Return the current revision of a clique's template, or None if the set has no such template."""
    template = clique_template(pcs, clique)
    return None if template is None else revisions.template_revision(pcs, template, policy)


def is_running(item: PodCliqueSet | PodClique | PodCliqueScalingGroup) -> bool:
    """Return whether an update of this object is in progress."""
    progress = item.status.update_progress if item.status else None
    return progress is not None and progress.update_ended_at is None


def current_replica(pcs: PodCliqueSet) -> int | None:
    """Return the index of the replica whose turn it is, or None if no replica is being updated."""
    progress = set_progress(pcs)
    if progress is None or progress.update_ended_at is not None or is_on_delete(pcs):
        return None
    return progress.currently_updating[0].replica_index if progress.currently_updating else None


def has_turn(pcs: PodCliqueSet, item: PodClique | PodCliqueScalingGroup) -> bool:
    """Return whether an object belongs to the replica whose turn it is. Objects of other replicas are not touched
    (CHG-DF08)."""
    return item.metadata.label(labels.REPLICA_INDEX) == str(current_replica(pcs))


def ended_progress(progress: Progress, now: str) -> Progress:
    """Return the progress with its end time."""
    return msgspec.structs.replace(progress, update_ended_at=now)


def is_finished(progress: CliqueUpdateProgress | GroupUpdateProgress | None, generation: str) -> bool:
    """Return whether this is the progress of a finished update to this generation."""
    if progress is None or progress.update_ended_at is None:
        return False
    return progress.pod_clique_set_generation_hash == generation


def must_record_update(
    pcs: PodCliqueSet, item: PodClique | PodCliqueScalingGroup, progress: OwnProgress | None
) -> bool:
    """Return whether an update with OnDelete has yet to be recorded on an object. Objects that are younger than the
    update were created from the new template (CHG-OD-02)."""
    progress_of_set = set_progress(pcs)
    if progress_of_set is None:
        return False
    if progress is not None:
        return progress.pod_clique_set_generation_hash != generation(pcs)
    created = timestamps.seconds(item.metadata.creation_timestamp)
    started = timestamps.seconds(progress_of_set.update_started_at)
    return created is not None and started is not None and created <= started


def clique_budget(pcs: PodCliqueSet, clique: PodClique) -> int:
    """Return the number of a standalone clique's pods that may be unavailable during an update that is not coherent
    (GM-101)."""
    template = clique_template(pcs, clique)
    return _budget(template.rolling_update if template is not None else None)


def group_budget(pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> int:
    """Return the number of a scaling group's replicas that may be unavailable during an update that is not coherent."""
    config = group_config(pcs, group.metadata.label(labels.REPLICA_INDEX), group.metadata.name)
    return _budget(config.rolling_update if config is not None else None)


def _budget(rolling_update: RollingUpdate | None) -> int:
    max_unavailable = rolling_update.max_unavailable if rolling_update is not None else None
    return max_unavailable if max_unavailable is not None else 1


def minimum(clique: PodClique) -> int:
    """Return the number of a clique's pods that must be Ready for its update to continue and to end. For a clique that
    is scaled below `minAvailable`, this is its number of replicas."""
    return min(clique.spec.minimum, clique.spec.replicas)


def has_generation(clique: PodClique | None, generation: str) -> bool:
    """Return whether a clique exists and all its pods belong to this generation of the set (CHG-RU-44)."""
    if clique is None or clique.metadata.deletion_timestamp is not None or clique.status is None:
        return False
    status = clique.status
    return (
        status.current_pod_clique_set_generation_hash == generation
        and status.current_pod_template_hash == clique.metadata.label(labels.TEMPLATE_HASH)
    )


def is_updated(clique: PodClique | None, generation: str) -> bool:
    """Return whether a clique belongs to this generation of the set and has enough Ready pods of it (CHG-RU-42)."""
    if clique is None or clique.status is None or not has_generation(clique, generation):
        return False
    minimum_replicas = minimum(clique)
    return clique.status.updated_replicas >= minimum_replicas and clique.status.ready_replicas >= minimum_replicas
