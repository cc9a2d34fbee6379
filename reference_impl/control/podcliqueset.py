"""PodCliqueSet: finalizer, generation hash, then per replica its service, cliques, scaling groups and gangs; status.

Nothing waits here: gangs fill up and gates go in the reconcilers of gangs and cliques (spec OBJ-301, CHG-DEL-02).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from kube.errors import ApiError
from kube.informer import Informer
from kube.objects import Key, Object
from reference_impl.api.models import PodCliqueSet, PodGang, wire
from reference_impl.control.cache import OWNER, Cache
from reference_impl.control.troubles import Troubles
from reference_impl.control.writer import Writer, together
from reference_impl.plan import children, gangs, hashes, labels, names, statuses

T = TypeVar("T", bound=Object)
Write = Callable[[], Awaitable[None]]

REPLICAS_AT_ONCE = 16
"""Replicas whose objects are being created at the same time: more would only queue up in the API server."""


class SetReconciler:
    def __init__(self, cache: Cache, writer: Writer, scheduler_name: str) -> None:
        self._cache, self._writer, self._scheduler = cache, writer, scheduler_name
        self._troubles = Troubles("ERR_SYNC_PODCLIQUESET")

    async def reconcile(self, key: Key) -> float | None:
        pcs = self._cache.sets.get(*key)
        if pcs is None:
            return None
        if pcs.metadata.deletion_timestamp is not None:
            await self._writer.remove_finalizer(self._cache.sets, pcs, labels.SET_FINALIZER)
            return None
        if labels.SET_FINALIZER not in (pcs.metadata.finalizers or ()):
            wanted = [*(pcs.metadata.finalizers or ()), labels.SET_FINALIZER]
            await self._writer.patch(self._cache.sets, pcs, {"metadata": {"finalizers": wanted}}, guard=True)
            pcs = self._cache.sets.get(*key) or pcs
        generation_hash = hashes.generation(pcs)
        if pcs.status is None or pcs.status.current_generation_hash != generation_hash:
            await self._write_status(pcs, generation_hash, observed=False)
            pcs = self._cache.sets.get(*key) or pcs
        try:
            await self._children(pcs)
        except ApiError as error:
            if self._troubles.note(key, error):
                await self._write_status(self._cache.sets.get(*key) or pcs, generation_hash, observed=False)
            raise
        self._troubles.clear(key)
        await self._write_status(self._cache.sets.get(*key) or pcs, generation_hash, observed=True)
        return None

    async def _write_status(self, pcs: PodCliqueSet, generation_hash: str, *, observed: bool) -> None:
        namespace = pcs.metadata.namespace
        status = statuses.set_status(
            pcs,
            generation_hash,
            lambda name: self._cache.cliques.get(namespace, name),
            lambda name: self._cache.groups.get(namespace, name),
            observed,
        )
        status.last_errors = self._troubles.of(pcs.metadata.key, status.last_errors)
        await self._writer.status(self._cache.sets, pcs, status)

    async def _children(self, pcs: PodCliqueSet) -> None:
        """Creates what is missing, corrects what differs, deletes what is no longer wanted."""
        wanted: set[tuple[str, str]] = set()
        steps = [list(self._replica(pcs, index, wanted)) for index in range(pcs.spec.replicas)]
        limit = asyncio.Semaphore(REPLICAS_AT_ONCE)

        async def in_order(writes: list[Write]) -> None:
            async with limit:
                for write in writes:
                    await write()

        await together(in_order(writes) for writes in steps if writes)
        await together(write() for write in list(self._surplus(pcs, wanted)))

    def _replica(self, pcs: PodCliqueSet, index: int, wanted: set[tuple[str, str]]) -> Iterator[Write]:
        """The writes that one replica needs, in order: service, cliques, scaling groups, gangs (OBJ-302)."""
        cache, writer, namespace, name = self._cache, self._writer, pcs.metadata.namespace, pcs.metadata.name

        def expect(informer: Informer[T], child: str) -> T | None:
            """The child, if it is there."""
            wanted.add((informer.resource.kind, child))
            return informer.get(namespace, child)

        service = expect(cache.services, names.service(name, index))
        if service is None:
            yield partial(writer.create, cache.services, children.service(pcs, index))
        elif service.spec.publish_not_ready_addresses != children.publish_not_ready(pcs):
            body = {"spec": {"publishNotReadyAddresses": children.publish_not_ready(pcs)}}
            yield partial(writer.patch, cache.services, service, body)
        for template in children.standalone_templates(pcs):
            if expect(cache.cliques, names.clique(name, index, template.name)) is None:
                yield partial(writer.create, cache.cliques, children.standalone_clique(pcs, index, template))
        for config in children.group_configs(pcs):
            if expect(cache.groups, names.scaling_group(name, index, config.name)) is None:
                yield partial(writer.create, cache.groups, children.scaling_group(pcs, index, config))
        for gang in gangs.planned(pcs, index, lambda group: self._group_replicas(namespace, group)):
            found = expect(cache.gangs, gang.name)
            if found is None:
                yield partial(writer.create, cache.gangs, gangs.manifest(pcs, index, gang, self._scheduler))
            elif drift := self._gang_drift(pcs, index, gang, found):
                yield partial(writer.patch, cache.gangs, found, drift, guard=True)

    def _gang_drift(self, pcs: PodCliqueSet, index: int, gang: gangs.PlannedGang, found: PodGang) -> dict[str, Any]:
        """What of a gang has to be corrected, as a merge patch; empty where nothing has."""
        body: dict[str, Any] = {}
        wanted = gangs.gang_labels(pcs, index, self._scheduler, found.metadata.labels)
        if wanted != (found.metadata.labels or {}):
            gone = dict.fromkeys(set(found.metadata.labels or {}) - set(wanted))
            body["metadata"] = {"labels": {**gone, **wanted}}
        if {g.name: g.min_replicas for g in found.spec.podgroups} != gang.floors:
            cliques = [self._cache.cliques.get(pcs.metadata.namespace, name) for name in gang.floors]
            pods = [pod for clique in cliques if clique is not None for pod in self._cache.pods_of(clique)]
            body.setdefault("spec", {})["podgroups"] = wire(gangs.filled(found, gang.floors, pods))
        if found.spec.priority_class_name != pcs.spec.template.priority_class_name:
            body.setdefault("spec", {})["priorityClassName"] = pcs.spec.template.priority_class_name
        return body

    def _group_replicas(self, namespace: str, group: str) -> int | None:
        found = self._cache.groups.get(namespace, group)
        return None if found is None else found.spec.replicas

    def _surplus(self, pcs: PodCliqueSet, wanted: set[tuple[str, str]]) -> Iterator[Write]:
        """Deletions of the set's own children that no replica wants."""
        cache = self._cache
        children_kinds: tuple[Informer[Any], ...] = (cache.gangs, cache.groups, cache.cliques, cache.services)
        for informer in children_kinds:
            for item in informer.indexed(OWNER, pcs.metadata.uid):
                unwanted = (informer.resource.kind, item.metadata.name) not in wanted
                if unwanted and item.metadata.deletion_timestamp is None:
                    yield partial(self._writer.delete, informer, item)
