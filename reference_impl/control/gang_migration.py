"""Migration of gangs to the line of the contract that this operator plays (spec GM-80 to GM-85, docs/operator.md).

A condition of the set marks its beginning, before anything is written. Then the maps are written, if layouts are
stored; cliques and pods get the labels of their new gangs; the reconciler of the set creates these and deletes the
others, after their last pod. The condition goes when all gangs are there. Every write is independent of the others, so
that a migration that was interrupted at any of them is completed by the next operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from reference_impl.api.models import PodCliqueSet, PodGang, wire
from reference_impl.control.cache import OWNER, Cache
from reference_impl.control.layouts import Layouts
from reference_impl.control.writer import Writer, together
from reference_impl.plan import conditions, gang_migration
from reference_impl.runtime.clock import now

AT_ONCE = 16
"""The number of objects that are written concurrently."""

Write = Callable[[], Awaitable[Any]]


class GangMigration:
    """Assigns the pods of sets to gangs of the present line."""

    def __init__(self, cache: Cache, writer: Writer, layouts: Layouts) -> None:
        self._cache, self._writer, self._layouts = cache, writer, layouts

    async def begin(self, pcs: PodCliqueSet) -> PodCliqueSet:
        """Mark a set with gangs of the other line; returns the set as it is then."""
        if gang_migration.running(pcs) or not self._foreign(pcs):
            return pcs
        old = pcs.status.conditions if pcs.status else None
        body = {"status": {"conditions": wire(conditions.put(old, gang_migration.condition(now())))}}
        await self._writer.patch(self._cache.sets, pcs, body, status=True, guard=True)
        return self._cache.sets.get(*pcs.metadata.key) or pcs

    async def assign(self, pcs: PodCliqueSet) -> None:
        """Give cliques and pods the labels of their gangs, as the layouts say."""
        if not gang_migration.running(pcs):
            return
        limit = asyncio.Semaphore(AT_ONCE)

        async def within(write: Write) -> None:
            async with limit:
                await write()

        writes = [write for index in range(pcs.spec.replicas) for write in self._of_replica(pcs, index)]
        await together(within(write) for write in writes)

    def ended(self, pcs: PodCliqueSet) -> bool:
        """Whether all gangs of a set exist, and none of the other line is left (GM-85)."""
        if self._foreign(pcs):
            return False
        gang_names = {gang.metadata.name for gang in self._gangs(pcs)}
        placements = (self._layouts.at(pcs, index) for index in range(pcs.spec.replicas))
        return all(placement is not None and placement.gangs.keys() <= gang_names for placement in placements)

    def _gangs(self, pcs: PodCliqueSet) -> list[PodGang]:
        return list(self._cache.gangs.indexed(OWNER, pcs.metadata.uid))

    def _foreign(self, pcs: PodCliqueSet) -> bool:
        return gang_migration.foreign(self._layouts.line, pcs, self._gangs(pcs))

    def _of_replica(self, pcs: PodCliqueSet, index: int) -> Iterator[Write]:
        line, placement = self._layouts.line, self._layouts.at(pcs, index)
        for clique in self._layouts.cliques(pcs, index) if placement is not None else ():
            if clique.metadata.deletion_timestamp is not None or placement is None:
                continue
            for pod in self._cache.pods_of(clique):
                if change := gang_migration.pod_change(line, pcs, clique, pod, placement):
                    yield partial(self._writer.patch, self._cache.pods, pod, change)
            if change := gang_migration.clique_change(line, pcs, clique, placement):
                yield partial(self._writer.patch, self._cache.cliques, clique, change)
