"""The update of a set, replica by replica (spec CHG-RU-02, CHG-RU-10 to CHG-RU-16, CHG-RU-60 to CHG-RU-63).

An update starts when the generation hash of the spec differs from the one in the status; the first generation of a set
is no update. One replica at a time has its turn, and keeps it until all its cliques and scaling groups report that they
are updated (`is_updated`). Replicas without bound pods come first, then breached ones, then one that an earlier update
left unfinished, then the others by index (`turn_key`). The update ends when all replicas are updated, and with OnDelete
at once. What happens in the replica whose turn it is follows in `update_clique_pods` and `update_group_replicas`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from reference_impl.api.models import (
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    ReplicaUpdate,
    SetUpdateProgress,
)
from reference_impl.plan import names, termination, update_progress
from reference_impl.plan.children import CliqueOf, GroupOf, group_configs, standalone_templates
from reference_impl.plan.revisions import Revision


class ObservedSet:
    """The observed state of a set's replicas."""

    def __init__(
        self, pcs: PodCliqueSet, clique: CliqueOf, group: GroupOf, of_group: Callable[[PodCliqueScalingGroup], CliqueOf]
    ) -> None:
        """`clique` and `group` find the set's own children by name, and `of_group` finds the children of a scaling
        group."""
        self._pcs, self._clique, self._group, self._of_group = pcs, clique, group, of_group
        self._templates = [template.name for template in standalone_templates(pcs)]
        self._configs = [config.name for config in group_configs(pcs)]

    def cliques(self, index: int) -> Iterator[PodClique | None]:
        """Yield the standalone cliques that a replica should have, with None for a clique that does not exist."""
        for name in self._templates:
            yield self._clique(names.clique(self._pcs.metadata.name, index, name))

    def groups(self, index: int) -> Iterator[PodCliqueScalingGroup | None]:
        """Yield the scaling groups that a replica should have, with None for a scaling group that does not exist."""
        for name in self._configs:
            yield self._group(names.scaling_group(self._pcs.metadata.name, index, name))

    def members(self, index: int) -> Iterator[PodClique]:
        """Yield the existing cliques of a replica's scaling groups."""
        for group in self.groups(index):
            if group is not None:
                for _, member in termination.members(group, self._of_group(group)):
                    yield member

    def parts(self, index: int) -> Iterator[PodClique | PodCliqueScalingGroup]:
        """Yield the existing standalone cliques and scaling groups of a replica."""
        yield from (clique for clique in self.cliques(index) if clique is not None)
        yield from (group for group in self.groups(index) if group is not None)


def progress(pcs: PodCliqueSet, generation: Revision, observed: ObservedSet, now: str) -> SetUpdateProgress | None:
    """Return the progress of a set's update to this generation, or None if there has never been an update. The first
    generation of a set is not an update. Any later generation that differs from the generation in the status is an
    update (CHG-RU-02, CHG-RU-03, CHG-RU-60)."""
    stored_generation, current = update_progress.generation(pcs), update_progress.set_progress(pcs)
    if stored_generation and not generation.has(stored_generation):
        current = started_progress(pcs, now)
    if current is None:
        return None
    return with_counts(pcs, advanced_progress(pcs, current, generation.hash, observed, now), generation.hash, observed)


def started_progress(pcs: PodCliqueSet, now: str) -> SetUpdateProgress:
    """Return the progress of an update that starts. With OnDelete the update ends at once."""
    return SetUpdateProgress(update_started_at=now, update_ended_at=now if update_progress.is_on_delete(pcs) else None)


def advanced_progress(
    pcs: PodCliqueSet, progress: SetUpdateProgress, generation: str, observed: ObservedSet, now: str
) -> SetUpdateProgress:
    """Return the next progress of a running update. A replica keeps its turn until it is updated."""
    if progress.update_ended_at is not None:
        return progress
    if update_progress.is_on_delete(pcs):  # CHG-DF11
        return update_progress.ended_progress(msgspec.structs.replace(progress, currently_updating=None), now)
    current = progress.currently_updating[0].replica_index if progress.currently_updating else None
    if current is not None and current < pcs.spec.replicas and not is_updated(observed, current, generation):
        return progress
    outdated_replicas = [index for index in range(pcs.spec.replicas) if not is_updated(observed, index, generation)]
    if not outdated_replicas:
        return update_progress.ended_progress(msgspec.structs.replace(progress, currently_updating=None), now)
    turn = ReplicaUpdate(
        replica_index=min(outdated_replicas, key=lambda index: turn_key(observed, index)), update_started_at=now
    )
    return msgspec.structs.replace(progress, currently_updating=[turn])


def is_updated(observed: ObservedSet, index: int, generation: str) -> bool:
    """Return whether a replica is updated according to the statuses of all its cliques and scaling groups
    (CHG-RU-14)."""
    return all(
        clique is not None
        and clique.status is not None
        and update_progress.is_updated(clique, generation)
        and update_progress.is_finished(clique.status.update_progress, generation)
        for clique in observed.cliques(index)
    ) and all(
        group is not None
        and group.status is not None
        and group.metadata.deletion_timestamp is None
        and group.status.current_pod_clique_set_generation_hash == generation
        and update_progress.is_finished(group.status.update_progress, generation)
        for group in observed.groups(index)
    )


def turn_key(observed: ObservedSet, index: int) -> tuple[bool, bool, bool, int]:
    """Return the sort key for the next turn (CHG-RU-11). Replicas without bound pods come first. Breached replicas
    whose termination delay is running come next, and then a replica that an earlier update left unfinished, so that no
    other replica is touched while it is incomplete (CHG-S75). All other replicas are sorted by index."""
    return (
        has_bound_pods(observed, index),
        not is_breached(observed, index),
        not has_unfinished_update(observed, index),
        index,
    )


def has_bound_pods(observed: ObservedSet, index: int) -> bool:
    """Return whether any pod of a replica is bound."""
    cliques = [*(clique for clique in observed.cliques(index) if clique is not None), *observed.members(index)]
    return any(clique.status is not None and clique.status.scheduled_replicas for clique in cliques)


def is_breached(observed: ObservedSet, index: int) -> bool:
    """Return whether a termination delay is running for any part of a replica."""
    standalone = (clique for clique in observed.cliques(index) if clique is not None)
    if any(termination.clique_breached_since(clique) is not None for clique in standalone):
        return True
    return any(
        termination.group_breached_since(group) is not None for group in observed.groups(index) if group is not None
    )


def has_unfinished_update(observed: ObservedSet, index: int) -> bool:
    """Return whether an update of any part of a replica is unfinished."""
    return any(update_progress.is_running(part) for part in observed.parts(index))


def with_counts(
    pcs: PodCliqueSet, progress: SetUpdateProgress, generation: str, observed: ObservedSet
) -> SetUpdateProgress:
    """Return the progress with the numbers of updated and total objects over all replicas (CHG-RU-54, CHG-RU-55)."""
    cliques = [clique for index in range(pcs.spec.replicas) for clique in observed.cliques(index)]
    groups = [group for index in range(pcs.spec.replicas) for group in observed.groups(index)]
    return msgspec.structs.replace(
        progress,
        updated_pod_cliques_count=sum(update_progress.is_updated(clique, generation) for clique in cliques),
        total_pod_cliques_count=len(cliques),
        updated_pod_clique_scaling_groups_count=sum(
            group is not None
            and group.metadata.deletion_timestamp is None
            and group.status is not None
            and group.status.current_pod_clique_set_generation_hash == generation
            for group in groups
        ),
        total_pod_clique_scaling_groups_count=len(groups),
    )
