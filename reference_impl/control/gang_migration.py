"""Migration of gangs to the release line of the contract that this operator implements (spec GM-80 to GM-85,
docs/operator.md).

A condition of the set marks the start of the migration before anything is written. Then the maps are written, if
layouts are stored; cliques and pods get the labels of their new gangs; and the set's reconciler creates these gangs and
deletes each old gang after its last pod. The condition is removed when all gangs exist. Every write is independent of
the others, so an operator that takes over after an interruption at any point completes the migration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from reference_impl.api.models import PodCliqueSet, PodGang, to_json
from reference_impl.control.cache import BY_OWNER, Cache
from reference_impl.control.layouts import Layouts
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import conditions, gang_migration
from reference_impl.runtime.clock import now

MAX_CONCURRENT_WRITES = 16
"""Maximum number of objects that are written concurrently."""

Write = Callable[[], Awaitable[Any]]


class GangMigration:
    """Assigns the pods of sets to gangs of this operator's release line."""

    def __init__(self, cache: Cache, writer: Writer, layouts: Layouts) -> None:
        self._cache, self._writer, self._layouts = cache, writer, layouts

    async def start(self, pcs: PodCliqueSet) -> PodCliqueSet:
        """Add the condition of a running migration to a set that has gangs of the other release line. Return the set as
        the cache has it then."""
        if gang_migration.is_running(pcs) or not self._has_foreign_gangs(pcs):
            return pcs
        old = pcs.status.conditions if pcs.status else None
        body = {"status": {"conditions": to_json(conditions.with_condition(old, gang_migration.condition(now())))}}
        await self._writer.patch(self._cache.sets, pcs, body, status=True, guard=True)
        return self._cache.sets.get(*pcs.metadata.key) or pcs

    async def assign(self, pcs: PodCliqueSet) -> None:
        """Give cliques and pods the labels of the gangs that the layouts assign to them."""
        if not gang_migration.is_running(pcs):
            return
        limit = asyncio.Semaphore(MAX_CONCURRENT_WRITES)

        async def write_limited(write: Write) -> None:
            async with limit:
                await write()

        writes = [write for index in range(pcs.spec.replicas) for write in self._replica_writes(pcs, index)]
        await await_all(write_limited(write) for write in writes)

    def is_complete(self, pcs: PodCliqueSet) -> bool:
        """Return whether all gangs of a set exist and no gang of the other release line is left (GM-85)."""
        if self._has_foreign_gangs(pcs):
            return False
        gang_names = {gang.metadata.name for gang in self._gangs(pcs)}
        placements = (self._layouts.placement_at(pcs, index) for index in range(pcs.spec.replicas))
        return all(placement is not None and placement.gangs.keys() <= gang_names for placement in placements)

    def _gangs(self, pcs: PodCliqueSet) -> list[PodGang]:
        return list(self._cache.gangs.indexed(BY_OWNER, pcs.metadata.uid))

    def _has_foreign_gangs(self, pcs: PodCliqueSet) -> bool:
        return gang_migration.has_foreign_gangs(self._layouts.line, pcs, self._gangs(pcs))

    def _replica_writes(self, pcs: PodCliqueSet, index: int) -> Iterator[Write]:
        line, placement = self._layouts.line, self._layouts.placement_at(pcs, index)
        for clique in self._layouts.cliques(pcs, index) if placement is not None else ():
            if clique.metadata.deletion_timestamp is not None or placement is None:
                continue
            for pod in self._cache.pods_of(clique):
                if change := gang_migration.pod_change(line, pcs, clique, pod, placement):
                    yield partial(self._writer.patch, self._cache.pods, pod, change)
            if change := gang_migration.clique_change(line, pcs, clique, placement):
                yield partial(self._writer.patch, self._cache.cliques, clique, change)
