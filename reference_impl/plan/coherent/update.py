"""The progress of a coherent update in the statuses of the set, its cliques and its scaling groups (spec GM-153,
COH-067, COH-110 to COH-116, COH-160 to COH-162)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from reference_impl.api.models import (
    CliqueUpdateProgress,
    GroupUpdateProgress,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    ReplicaUpdate,
    SetUpdateProgress,
    UpdateStrategyType,
)
from reference_impl.api.pods import Pod
from reference_impl.plan import labels, revisions, update_progress
from reference_impl.plan.components import Key, Kind
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.revisions import Revision


def is_coherent(pcs: PodCliqueSet) -> bool:
    """Return whether the set has the update strategy Coherent."""
    return update_progress.strategy(pcs) == UpdateStrategyType.COHERENT


def is_running(pcs: PodCliqueSet) -> bool:
    """Return whether a coherent update of the set is in progress."""
    return is_coherent(pcs) and update_progress.is_running(pcs)


def may_refill_all(pcs: PodCliqueSet, policy: Policy = STANDARD) -> bool:
    """Return whether lost pods are replaced in all gangs. This is not the case while a coherent update is in progress
    or about to start."""
    if not is_coherent(pcs):
        return True
    return not is_running(pcs) and revisions.set_revision(pcs, policy).has(update_progress.generation(pcs))


def scope_of(progress: SetUpdateProgress | None) -> set[Key]:
    """Return the components in the scope of an update."""
    if progress is None:
        return set()
    return {
        *(Key(Kind.CLIQUE, name) for name in progress.in_scope_standalone_pod_cliques or ()),
        *(Key(Kind.GROUP, name) for name in progress.in_scope_pod_clique_scaling_groups or ()),
    }


def started_progress(old: SetUpdateProgress | None, scope: Collection[Key], now: str) -> SetUpdateProgress:
    """Return the progress of an update that starts. If it interrupts another update, it keeps that update's start time
    and turn (COH-195). Without a scope it ends at once (COH-113)."""
    is_running = old is not None and old.update_ended_at is None
    started_at = (old.update_started_at if is_running and old is not None else None) or now
    turn = old.currently_updating if is_running and old is not None and scope else None
    return SetUpdateProgress(
        update_started_at=started_at,
        update_ended_at=None if scope else now,
        currently_updating=[msgspec.structs.replace(replica, in_flight_epochs=None, message=None) for replica in turn]
        if turn
        else None,
        in_scope_standalone_pod_cliques=sorted(key.name for key in scope if key.kind is Kind.CLIQUE) or None,
        in_scope_pod_clique_scaling_groups=sorted(key.name for key in scope if key.kind is Kind.GROUP) or None,
    )


def advanced_progress(
    progress: SetUpdateProgress,
    waiting: Sequence[int],
    complete: bool,
    in_flight: Sequence[str],
    message: str,
    now: str,
) -> SetUpdateProgress:
    """Return the next progress of a running update. `waiting` holds the replicas with an old version, and `complete`
    says whether the replica whose turn it is has been updated; `in_flight` and `message` describe that replica."""
    if progress.update_ended_at is not None:
        return progress
    current = progress.currently_updating[0] if progress.currently_updating else None
    if current is not None and not complete:
        turn = msgspec.structs.replace(current, in_flight_epochs=list(in_flight) or None, message=message or None)
        return msgspec.structs.replace(progress, currently_updating=[turn])
    if not waiting:
        return update_progress.ended_progress(
            msgspec.structs.replace(
                progress,
                currently_updating=None,
                in_scope_standalone_pod_cliques=None,
                in_scope_pod_clique_scaling_groups=None,
            ),
            now,
        )
    turn = ReplicaUpdate(replica_index=min(waiting), update_started_at=now)
    return msgspec.structs.replace(progress, currently_updating=[turn])


def progress_without_scope(progress: SetUpdateProgress | None) -> SetUpdateProgress | None:
    """Return the progress without the fields of coherent updates, for an update with another strategy (COH-274)."""
    if progress is None:
        return None
    turns = progress.currently_updating
    return msgspec.structs.replace(
        progress,
        currently_updating=[msgspec.structs.replace(replica, in_flight_epochs=None, message=None) for replica in turns]
        if turns
        else turns,
        in_scope_standalone_pod_cliques=None,
        in_scope_pod_clique_scaling_groups=None,
    )


def clique_progress(
    pcs: PodCliqueSet, clique: PodClique, target: str, complete: bool, now: str
) -> CliqueUpdateProgress | None:
    """Return the progress of a standalone clique whose replica is being updated to the template hash `target`;
    `complete` says whether all its pods have the new version."""
    old = clique.status.update_progress if clique.status else None
    if not is_running(pcs) or not update_progress.has_turn(pcs, clique):
        return old
    generation = update_progress.generation(pcs)
    if old is None or old.pod_clique_set_generation_hash != generation:
        old = CliqueUpdateProgress(
            update_started_at=now, pod_clique_set_generation_hash=generation, pod_template_hash=target
        )
    if old.update_ended_at is None and complete:
        return update_progress.ended_progress(old, now)
    return old


def group_progress(
    pcs: PodCliqueSet, group: PodCliqueScalingGroup, complete: bool, now: str
) -> GroupUpdateProgress | None:
    """Return the progress of a scaling group whose replica is being updated; `complete` says whether all its members
    have the new version."""
    old = group.status.update_progress if group.status else None
    if not is_running(pcs) or not update_progress.has_turn(pcs, group):
        return old
    generation = update_progress.generation(pcs)
    if old is None or old.pod_clique_set_generation_hash != generation:
        old = GroupUpdateProgress(update_started_at=now, pod_clique_set_generation_hash=generation)
    if old.update_ended_at is None and complete:
        return update_progress.ended_progress(old, now)
    return old


def is_clique_complete(clique: PodClique, pods: Sequence[Pod], counts: Mapping[str, int], target: Revision) -> bool:
    """Return whether a clique has all its pods in the gangs that should hold them, all of the new version, and enough
    of them Ready. `target` is the new version."""
    active = [pod for pod in pods if pod.active]
    actual: dict[str, int] = {}
    for pod in active:
        gang = pod.metadata.label(labels.PODGANG)
        actual[gang] = actual.get(gang, 0) + 1
    return (
        actual == dict(counts)
        and target.has(clique.metadata.label(labels.TEMPLATE_HASH))
        and all(target.has(pod.metadata.label(labels.TEMPLATE_HASH)) for pod in active)
        and sum(pod.ready for pod in active) >= update_progress.minimum(clique)
    )
