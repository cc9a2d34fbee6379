"""PodCliqueScalingGroup: the cliques of its replicas and its status (spec OBJ-320, OBJ-321, OBJ-760 to OBJ-772)."""

from __future__ import annotations

from kube.errors import ApiError
from kube.objects import Key
from reference_impl.api import models
from reference_impl.api.models import PodCliqueScalingGroup, PodCliqueSet
from reference_impl.control.cache import OWNER, Cache
from reference_impl.control.troubles import Troubles
from reference_impl.control.writer import Writer, now, together
from reference_impl.plan import children, labels, names, statuses


class GroupReconciler:
    def __init__(self, cache: Cache, writer: Writer) -> None:
        self._cache, self._writer = cache, writer
        self._troubles = Troubles("ERR_SYNC_PODCLIQUES")

    async def reconcile(self, key: Key) -> float | None:
        group = self._cache.groups.get(*key)
        if group is None:
            return None
        if group.metadata.deletion_timestamp is not None:
            await self._writer.remove_finalizer(self._cache.groups, group, labels.SCALING_GROUP_FINALIZER)
            return None
        pcs = self._cache.set_of(group)
        if pcs is not None and pcs.metadata.deletion_timestamp is None:
            try:
                await self._members(pcs, group)
            except ApiError as error:
                if self._troubles.note(key, error):
                    await self._status(group, pcs)
                raise
        self._troubles.clear(key)
        await self._status(group, pcs)
        return None

    async def _members(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> None:
        """Creates the cliques of all replicas at once, base and scaled, and deletes those of replicas too many."""
        index = group.metadata.label(labels.REPLICA_INDEX)
        config = next(
            (
                c
                for c in children.group_configs(pcs)
                if names.scaling_group(pcs.metadata.name, int(index), c.name) == group.metadata.name
            ),
            None,
        )
        if config is None:
            return
        wanted = {m["metadata"]["name"]: m for m in children.member_cliques(pcs, group, config)}
        present = {clique.metadata.name: clique for clique in self._cache.cliques.indexed(OWNER, group.metadata.uid)}
        await together(
            [
                *(self._writer.create(self._cache.cliques, m) for name, m in wanted.items() if name not in present),
                *(
                    self._writer.delete(self._cache.cliques, clique)
                    for name, clique in present.items()
                    if name not in wanted and clique.metadata.deletion_timestamp is None
                ),
            ]
        )

    async def _status(self, group: PodCliqueScalingGroup, pcs: PodCliqueSet | None) -> None:
        namespace = group.metadata.namespace
        status = statuses.group_status(group, pcs, lambda name: self._cache.cliques.get(namespace, name), now())
        status.last_errors = self._troubles.of(group.metadata.key, status.last_errors)
        await self._writer.status(self._cache.groups, group, status)
        lost = group.status.scheduled_replicas if group.status else 0
        if lost and not status.scheduled_replicas:
            note = f"All scheduled replicas lost (was {lost})."
            await self._writer.warn(models.SCALING_GROUPS, group, statuses.ALL_LOST, note)
