"""Migration of stored hashes after an upgrade of the operator (docs/hashes.md; docs/spec/hashes.md, section 6.2).

Hashes of the current templates that another operator version stored in statuses, labels and PodGangMaps are replaced
with hashes in our scheme before any comparison. An upgrade therefore restarts no pods.

Each reconciler consults the migration once per reconcile, before it makes any decision. A set is migrated as a whole
(`migrate`): its status first, then its scaling groups, cliques, pods, PodGangMaps and PodGangs. The reconcilers of
scaling groups and cliques wait until the set is migrated (`is_migrated`). Every write is independent of the others, so
an operator that takes over after an interruption at any point completes the migration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from kube.errors import ApiError
from kube.informer import Informer
from kube.objects import Key
from reference_impl.api.models import PODCLIQUESETS, PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.control.cache import BY_OWNER, Cache
from reference_impl.control.last_errors import LastErrors
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import children, gang_migration, hashes, labels, maps, migration
from reference_impl.plan.hashing.schemes import Scheme
from reference_impl.plan.hashing.window import STANDARD, CurrentHashes, Policy, Window

log = logging.getLogger(__name__)

EVENT = "HashesMigrated"
MAX_CONCURRENT_WRITES = 16
"""Maximum number of objects that are written concurrently."""

Write = Callable[[], Awaitable[Any]]


class HashMigration:
    """Migrates sets, and remembers which sets have been migrated. `wake` requests a reconcile of a set, and
    `last_errors` reports refused writes."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        wake: Callable[[Key], None],
        last_errors: LastErrors,
        policy: Policy = STANDARD,
    ) -> None:
        self._cache, self._writer, self._wake, self._policy = cache, writer, wake, policy
        self._last_errors = last_errors
        cache.sets.add_handler(self._on_set)
        self._windows: dict[Key, tuple[str, int, Window]] = {}
        self._migrated_sets: dict[Key, tuple[str, int]] = {}
        """The uid and generation in which each set was migrated completely."""

    def window(self, pcs: PodCliqueSet) -> Window:
        """Return the current hashes of a set in its current generation."""
        key, uid, generation = pcs.metadata.key, pcs.metadata.uid, pcs.metadata.generation
        cached_window = self._windows.get(key)
        if cached_window is not None and cached_window[:2] == (uid, generation):
            return cached_window[2]
        window = hashes.window(pcs, self._policy)
        if cached_window is not None and cached_window[0] == uid:
            window.keep_recognizing(cached_window[2])
        self._windows[key] = uid, generation, window
        return window

    def _on_set(self, event_type: str, old: PodCliqueSet | None, item: PodCliqueSet) -> None:
        if event_type == "DELETED":
            self._windows.pop(item.metadata.key, None)
            self._migrated_sets.pop(item.metadata.key, None)

    def is_migrated(self, pcs: PodCliqueSet, item: PodClique | PodCliqueScalingGroup) -> bool:
        """Return whether no hash of the object is left to migrate. If some are left, request a reconcile of the set,
        whose writes trigger the object again."""
        if pcs.metadata.deletion_timestamp is not None:
            return True
        if gang_migration.is_running(pcs):
            return False  # the object is triggered again when the migration has ended
        window = self.window(pcs)
        writes = (
            self._group_writes(window, item)
            if isinstance(item, PodCliqueScalingGroup)
            else self._clique_writes(window, pcs, item)
        )
        if next(writes, None) is None:
            return True
        self._migrated_sets.pop(pcs.metadata.key, None)
        self._wake(pcs.metadata.key)
        return False

    async def migrate(self, pcs: PodCliqueSet) -> PodCliqueSet:
        """Replace all current hashes of a set with hashes in our scheme, and return the resulting set. If a write is
        refused, report the error in `lastErrors` and raise it."""
        try:
            return await self._migrate(pcs)
        except ApiError as error:
            await self._last_errors.report_refusal(pcs.metadata.key, "ERR_MIGRATE_HASHES", error)
            raise

    async def _migrate(self, pcs: PodCliqueSet) -> PodCliqueSet:
        key, state = pcs.metadata.key, (pcs.metadata.uid, pcs.metadata.generation)
        if self._migrated_sets.get(key) == state:
            return pcs
        window = self.window(pcs)
        if pcs.status is not None and (scheme := window.generation.foreign_scheme(pcs.status.current_generation_hash)):
            await self._writer.write_status(self._cache.sets, pcs, migration.set_status(window, pcs.status), guard=True)
            await self._announce(pcs, scheme)
        limit = asyncio.Semaphore(MAX_CONCURRENT_WRITES)

        async def write_limited(write: Write) -> None:
            async with limit:
                await write()

        writes = list(self._set_writes(window, pcs))
        await await_all(write_limited(write) for write in writes)
        if writes:
            log.info("migrated %d hashes of %s/%s", len(writes), *key)
        self._migrated_sets[key] = state
        return self._cache.sets.get(*key) or pcs

    async def _announce(self, pcs: PodCliqueSet, scheme: Scheme) -> None:
        note = f"Rewriting stored hashes ({scheme}) in the current scheme ({self._policy.written}); no pod is restarted"
        log.info("%s/%s: %s", pcs.metadata.namespace, pcs.metadata.name, note)
        await self._writer.post_event(PODCLIQUESETS, pcs, "Normal", EVENT, note)

    def _set_writes(self, window: Window, pcs: PodCliqueSet) -> Iterator[Write]:
        groups = self._cache.groups.indexed(BY_OWNER, pcs.metadata.uid)
        for clique in self._cache.cliques.indexed(BY_OWNER, pcs.metadata.uid):
            yield from self._clique_writes(window, pcs, clique)
        for group in groups:
            for clique in self._cache.cliques.indexed(BY_OWNER, group.metadata.uid):
                yield from self._clique_writes(window, pcs, clique)
            yield from self._group_writes(window, group)
        yield from self._gang_writes(window.generation, pcs)
        for gang_map in self._cache.maps.indexed(BY_OWNER, pcs.metadata.uid):
            stored = maps.read(gang_map)
            if (desired := migration.replica_map(window, stored)) != stored:
                manifest = maps.manifest(pcs, gang_map.spec.pod_clique_set_replica_index, desired)
                body = maps.correction(manifest, gang_map)
                yield partial(self._writer.patch, self._cache.maps, gang_map, body, guard=True)

    def _gang_writes(self, generation: CurrentHashes, pcs: PodCliqueSet) -> Iterator[Write]:
        for gang in self._cache.gangs.indexed(BY_OWNER, pcs.metadata.uid):
            if generation.foreign_scheme(gang.metadata.label(labels.GENERATION_HASH)):
                body = {"metadata": {"labels": {labels.GENERATION_HASH: generation.written}}}
                yield partial(self._writer.patch, self._cache.gangs, gang, body)

    def _group_writes(self, window: Window, group: PodCliqueScalingGroup) -> Iterator[Write]:
        if group.status is not None and group.metadata.deletion_timestamp is None:
            yield from self._status_writes(self._cache.groups, group, migration.group_status(window, group.status))

    def _clique_writes(self, window: Window, pcs: PodCliqueSet, clique: PodClique) -> Iterator[Write]:
        """Yield the writes for a clique and its pods, which may be done in any order."""
        template = children.clique_template(pcs, clique)
        current_hashes = window.templates.get(template.name) if template is not None else None
        if current_hashes is None or clique.metadata.deletion_timestamp is not None:
            return
        for pod in self._cache.pods_of(clique):
            if not pod.terminating:
                yield from self._label_writes(self._cache.pods, pod, current_hashes)
        clique_writes = list(self._label_writes(self._cache.cliques, clique, current_hashes))
        if clique.status is not None:
            clique_writes += self._status_writes(
                self._cache.cliques, clique, migration.clique_status(window, current_hashes, clique.status)
            )
        if clique_writes:
            yield partial(_write_in_order, clique_writes)  # one after another, since both change the resource version

    def _label_writes(self, informer: Informer[Any], item: Any, current_hashes: CurrentHashes) -> Iterator[Write]:
        if current_hashes.foreign_scheme(item.metadata.label(labels.TEMPLATE_HASH)):
            body = {"metadata": {"labels": {labels.TEMPLATE_HASH: current_hashes.written}}}
            yield partial(self._writer.patch, informer, item, body)

    def _status_writes(self, informer: Informer[Any], item: Any, status: Any) -> Iterator[Write]:
        if status != item.status:
            yield partial(self._write_status, informer, item.metadata.key, item.status, status)

    async def _write_status(self, informer: Informer[Any], key: Key, old: Any, new: Any) -> None:
        """Write the status of an object. The object's label, and with it its resource version, may have changed in the
        meantime."""
        item = informer.get(*key)
        if item is not None and item.status == old:
            await self._writer.write_status(informer, item, new, guard=True)


async def _write_in_order(writes: list[Write]) -> None:
    for write in writes:
        await write()
