"""Migration of stored hashes: a hash that an earlier operator stored for the present template is rewritten in the
current scheme before anything is compared with it, so that an operator upgrade restarts no pod (docs/hashes.md;
docs/spec/hashes.md, section 6.2).

The pass over a set migrates all of it: the set's status first, then its groups and cliques and their pods. Each write
stands by itself, so that a migration that was cut short goes on where it ended. Passes over groups and cliques compare
nothing before that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from kube.informer import Informer
from kube.objects import Key
from reference_impl.api.models import PODCLIQUESETS, PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.control.cache import OWNER, Cache
from reference_impl.control.writer import Writer, together
from reference_impl.plan import children, hashes, labels, migration
from reference_impl.plan.hashing.schemes import Scheme
from reference_impl.plan.hashing.window import Known, Window

log = logging.getLogger(__name__)

EVENT = "HashesMigrated"
AT_ONCE = 16

Write = Callable[[], Awaitable[Any]]


class HashMigration:
    """Knows the hashes of each set, and what of it has still to be migrated. `wake` has a set looked at."""

    def __init__(self, cache: Cache, writer: Writer, wake: Callable[[Key], None]) -> None:
        self._cache, self._writer, self._wake = cache, writer, wake
        self._windows: dict[Key, tuple[str, int, Window]] = {}
        self._done: dict[Key, tuple[str, int]] = {}
        """Sets, with uid and generation, in which nothing was left to migrate."""

    def window(self, pcs: PodCliqueSet) -> Window:
        """The hashes of a set as it is now."""
        key, uid, generation = pcs.metadata.key, pcs.metadata.uid, pcs.metadata.generation
        earlier = self._windows.get(key)
        if earlier is not None and earlier[:2] == (uid, generation):
            return earlier[2]
        window = hashes.known(pcs)
        if earlier is not None and earlier[0] == uid:
            window.keep(earlier[2])
        self._windows[key] = uid, generation, window
        return window

    def forget(self, key: Key) -> None:
        """The set is gone."""
        self._windows.pop(key, None)
        self._done.pop(key, None)

    def settled(self, pcs: PodCliqueSet, item: PodClique | PodCliqueScalingGroup) -> bool:
        """Whether an object of a set has no hash left that is to be migrated. Otherwise the set is looked at, and
        then the object again."""
        if pcs.metadata.deletion_timestamp is not None:
            return True
        window = self.window(pcs)
        writes = (
            self._of_group(window, item)
            if isinstance(item, PodCliqueScalingGroup)
            else self._of_clique(window, pcs, item)
        )
        if next(writes, None) is None:
            return True
        self._done.pop(pcs.metadata.key, None)
        self._wake(pcs.metadata.key)
        return False

    async def migrate(self, pcs: PodCliqueSet) -> PodCliqueSet:
        """Brings all hashes of a set to those that we write, and gives the set as it is then."""
        key, state = pcs.metadata.key, (pcs.metadata.uid, pcs.metadata.generation)
        if self._done.get(key) == state:
            return pcs
        window = self.window(pcs)
        if pcs.status is not None and (scheme := window.generation.foreign(pcs.status.current_generation_hash)):
            await self._writer.status(self._cache.sets, pcs, migration.set_status(window, pcs.status), guard=True)
            await self._tell(pcs, scheme)
        limit = asyncio.Semaphore(AT_ONCE)

        async def within(write: Write) -> None:
            async with limit:
                await write()

        writes = list(self._of_all(window, pcs))
        await together(within(write) for write in writes)
        if writes:
            log.info("%d hashes of %s/%s were migrated", len(writes), *key)
        self._done[key] = state
        return self._cache.sets.get(*key) or pcs

    async def _tell(self, pcs: PodCliqueSet, scheme: Scheme) -> None:
        note = f"Stored hashes are current ({scheme}) and are written anew as {hashes.written()}; nothing is restarted."
        log.info("%s/%s: %s", pcs.metadata.namespace, pcs.metadata.name, note)
        await self._writer.tell(PODCLIQUESETS, pcs, "Normal", EVENT, note)

    def _of_all(self, window: Window, pcs: PodCliqueSet) -> Iterator[Write]:
        own = self._cache.groups.indexed(OWNER, pcs.metadata.uid)
        for clique in self._cache.cliques.indexed(OWNER, pcs.metadata.uid):
            yield from self._of_clique(window, pcs, clique)
        for group in own:
            for clique in self._cache.cliques.indexed(OWNER, group.metadata.uid):
                yield from self._of_clique(window, pcs, clique)
            yield from self._of_group(window, group)

    def _of_group(self, window: Window, group: PodCliqueScalingGroup) -> Iterator[Write]:
        if group.status is not None and group.metadata.deletion_timestamp is None:
            yield from self._status(self._cache.groups, group, migration.group_status(window, group.status))

    def _of_clique(self, window: Window, pcs: PodCliqueSet, clique: PodClique) -> Iterator[Write]:
        """The writes that a clique and its pods need, in any order."""
        template = children.clique_template(pcs, clique)
        known = window.templates.get(template.name) if template is not None else None
        if known is None or clique.metadata.deletion_timestamp is not None:
            return
        for pod in self._cache.pods_of(clique):
            if not pod.terminating:
                yield from self._label(self._cache.pods, pod, known)
        own = list(self._label(self._cache.cliques, clique, known))
        if clique.status is not None:
            own += self._status(self._cache.cliques, clique, migration.clique_status(window, known, clique.status))
        if own:
            yield partial(_one_by_one, own)  # both change its version

    def _label(self, informer: Informer[Any], item: Any, known: Known) -> Iterator[Write]:
        if known.foreign(item.metadata.label(labels.TEMPLATE_HASH)):
            body = {"metadata": {"labels": {labels.TEMPLATE_HASH: known.written}}}
            yield partial(self._writer.patch, informer, item, body)

    def _status(self, informer: Informer[Any], item: Any, status: Any) -> Iterator[Write]:
        if status != item.status:
            yield partial(self._write_status, informer, item.metadata.key, item.status, status)

    async def _write_status(self, informer: Informer[Any], key: Key, old: Any, new: Any) -> None:
        """The object may have got another label by now, and with it another version."""
        item = informer.get(*key)
        if item is not None and item.status == old:
            await self._writer.status(informer, item, new, guard=True)


async def _one_by_one(writes: list[Write]) -> None:
    for write in writes:
        await write()
