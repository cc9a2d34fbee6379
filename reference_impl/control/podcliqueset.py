"""PodCliqueSet: finalizer, generation hash, its surroundings, then per replica its service, cliques, scaling groups,
gangs and autoscalers; status.

Nothing waits here: gangs fill up and gates go in the reconcilers of gangs and cliques (spec OBJ-301, CHG-DEL-02).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from kube.errors import ApiError
from kube.informer import Informer
from kube.objects import Key, Object
from reference_impl.api.models import PodCliqueSet, PodGang
from reference_impl.api.pods import Pod
from reference_impl.control.cache import OWNER, Cache
from reference_impl.control.features import NO_FEATURES, Features
from reference_impl.control.last_errors import LastErrors, earliest
from reference_impl.control.migration import HashMigration
from reference_impl.control.secondary_resources import SecondaryResources, Wanted
from reference_impl.control.termination import Termination
from reference_impl.control.writer import Writer, now, together
from reference_impl.plan import (
    autoscalers,
    children,
    conditions,
    gangs,
    labels,
    names,
    reconcile_error,
    revisions,
    statuses,
    template_drift,
    topology,
    update_progress,
    update_set_replicas,
)
from reference_impl.plan.reconcile_error import ReconcileError
from reference_impl.plan.revisions import Revision

T = TypeVar("T", bound=Object)
Write = Callable[[], Awaitable[None]]

REPLICAS_AT_ONCE = 16
"""Replicas whose objects are being created at the same time: more would only queue up in the API server."""


class SetReconciler:
    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        scheduler_name: str,
        migration: HashMigration,
        features: Features = NO_FEATURES,
    ) -> None:
        self._cache, self._writer, self._scheduler, self._features = cache, writer, scheduler_name, features
        self._migration = migration
        self._secondary = SecondaryResources(cache, writer)
        self._termination = Termination(cache, writer)
        self.last_errors = LastErrors(cache.sets, writer)

    async def reconcile(self, key: Key) -> float | None:
        pcs = self._cache.sets.get(*key)
        if pcs is None:
            self._migration.forget(key)
            return None
        if pcs.metadata.deletion_timestamp is not None:
            await self._writer.remove_finalizer(self._cache.sets, pcs, labels.SET_FINALIZER)
            return None
        if labels.SET_FINALIZER not in (pcs.metadata.finalizers or ()):
            wanted = [*(pcs.metadata.finalizers or ()), labels.SET_FINALIZER]
            await self._writer.patch(self._cache.sets, pcs, {"metadata": {"finalizers": wanted}}, guard=True)
            pcs = self._cache.sets.get(*key) or pcs
        try:
            pcs = await self._migration.migrate(pcs)
        except ApiError as error:
            await self.last_errors.refused(key, "ERR_MIGRATE_HASHES", error)
            raise
        generation = revisions.of_set(pcs)
        if not generation.has(update_progress.generation(pcs)):
            await self._write_status(pcs, generation, observed=False)
            pcs = self._cache.sets.get(*key) or pcs
        problem: ReconcileError | None = None
        wait: float | None = None
        try:
            wait = await self._termination.in_set(pcs)
            await self._children(pcs)
        except ReconcileError as caught:
            problem = caught
        except ApiError as error:
            await self.last_errors.refused(key, "ERR_SYNC_PODCLIQUESET", error)
            raise
        await self._write_status(self._cache.sets.get(*key) or pcs, generation, observed=problem is None)
        return earliest(wait, await self.last_errors.tell(key, problem))

    async def _write_status(self, pcs: PodCliqueSet, generation: Revision, *, observed: bool) -> None:
        """Writes what there is of the set, and how far its update has come. `generation` is that of the spec that is
        being acted on: another one in the status begins an update (CHG-RU-02)."""
        clique, group = (self._cache.child(self._cache.cliques, pcs), self._cache.child(self._cache.groups, pcs))
        progress = update_set_replicas.progress(pcs, generation, update_set_replicas.Found(pcs, clique, group), now())
        observed = observed and (progress is None or progress.update_ended_at is not None)
        status = statuses.set_status(pcs, generation.hash, clique, group, observed, progress)
        told = topology.condition(pcs, self._topology(pcs), now())
        status.conditions = (
            conditions.put(status.conditions, told)
            if told
            else conditions.without(status.conditions, topology.CONDITION)
        )
        await self._writer.status(self._cache.sets, pcs, status)

    def _topology(self, pcs: PodCliqueSet) -> topology.Topology:
        """What is known of the topology that a set refers to."""
        enabled, name = self._features.topology, topology.binding_name(pcs)
        return topology.of_set(pcs, enabled, self._cache.topologies.get("", name) if enabled and name else None)

    async def _children(self, pcs: PodCliqueSet) -> None:
        """Creates what is missing, corrects what differs, deletes what is no longer wanted."""
        wanted: Wanted = set()
        await self._secondary.ensure(pcs, wanted, domains=self._features.mnnvl)
        levels = self._topology(pcs)
        current = {t.name: revisions.of_template(pcs, t) for t in children.standalone_templates(pcs)}
        steps = [list(self._replica(pcs, index, wanted, levels, current)) for index in range(pcs.spec.replicas)]
        limit = asyncio.Semaphore(REPLICAS_AT_ONCE)

        async def in_order(writes: list[Write]) -> None:
            async with limit:
                for write in writes:
                    await write()

        await together(in_order(writes) for writes in steps if writes)
        await together(write() for write in list(self._surplus(pcs, wanted)))

    def _replica(
        self,
        pcs: PodCliqueSet,
        index: int,
        wanted: Wanted,
        levels: topology.Topology,
        current: Mapping[str, Revision],
    ) -> Iterator[Write]:
        """The writes that one replica needs, in order: service, cliques, scaling groups, gangs (OBJ-302), then what
        scales them. `current` are the present revisions of the standalone cliques' templates."""
        cache, writer, namespace, name = self._cache, self._writer, pcs.metadata.namespace, pcs.metadata.name
        conflicts: list[Write] = []

        def expect(informer: Informer[T], child: str) -> T | None:
            """The child, if it is there."""
            kind = informer.resource.kind
            wanted.add((kind, child))
            found = informer.get(namespace, child)
            if found is not None and not _controlled(found, pcs):
                conflicts.append(partial(_refuse, reconcile_error.conflict(kind, namespace, child)))
            return found

        service = expect(cache.services, names.service(name, index))
        if service is None:
            yield partial(writer.create, cache.services, children.service(pcs, index))
        elif not children.right_service(pcs, index, service):
            yield partial(writer.ensure, cache.services, children.service(pcs, index))
        channels = self._features.mnnvl
        for template in children.standalone_templates(pcs):
            clique = expect(cache.cliques, names.clique(name, index, template.name))
            if clique is None:
                manifest = children.standalone_clique(pcs, index, template, channels=channels)
                yield partial(writer.create, cache.cliques, manifest)
            elif _controlled(clique, pcs):
                if template_drift.outdated(clique, current[template.name]):
                    manifest = children.standalone_clique(pcs, index, template, channels=channels)
                    yield partial(writer.renew, cache.cliques, clique, manifest)
                if change := template_drift.clique(template, clique):
                    yield partial(writer.patch, cache.cliques, clique, change)
        for config in children.group_configs(pcs):
            group = expect(cache.groups, names.scaling_group(name, index, config.name))
            if group is None:
                yield partial(writer.create, cache.groups, children.scaling_group(pcs, index, config))
            elif _controlled(group, pcs) and (change := template_drift.group(config, group)):
                yield partial(writer.patch, cache.groups, group, change)
        for gang in gangs.planned(pcs, index, lambda group: self._group_replicas(namespace, group), levels):
            found = expect(cache.gangs, gang.name)
            if found is None:
                manifest = gangs.manifest(pcs, index, gang, self._scheduler, levels.binding)
                yield partial(writer.create, cache.gangs, manifest)
            elif _controlled(found, pcs) and (drift := self._gang_drift(pcs, index, gang, found, levels.binding)):
                yield partial(writer.patch, cache.gangs, found, drift, guard=True)
        for autoscaler in autoscalers.of_replica(pcs, index):
            own = (autoscaler["kind"], autoscaler["metadata"]["name"])
            if own in wanted:  # a clique and a scaling group of one name (OBJ-123): the first has it
                conflicts.append(partial(_refuse, reconcile_error.conflict(own[0], namespace, own[1])))
                continue
            wanted.add(own)
            yield partial(writer.ensure, cache.autoscalers, autoscaler)
        yield from conflicts

    def _gang_drift(
        self, pcs: PodCliqueSet, index: int, gang: gangs.PlannedGang, found: PodGang, binding: str
    ) -> dict[str, Any]:
        """What of a gang has to be corrected, as a merge patch; empty where nothing has."""

        def pods() -> list[Pod]:
            cliques = [self._cache.cliques.get(pcs.metadata.namespace, name) for name in gang.minimums]
            return [pod for clique in cliques if clique is not None for pod in self._cache.pods_of(clique)]

        tags = gangs.gang_labels(pcs, index, self._scheduler, found.metadata.labels)
        return gangs.drift(pcs, gang, found, tags, binding, pods)

    def _group_replicas(self, namespace: str, group: str) -> int | None:
        found = self._cache.groups.get(namespace, group)
        return None if found is None else found.spec.replicas

    def _surplus(self, pcs: PodCliqueSet, wanted: set[tuple[str, str]]) -> Iterator[Write]:
        """Deletions of the set's own children that no replica wants."""
        cache = self._cache
        children_kinds: tuple[Informer[Any], ...] = (cache.gangs, cache.groups, cache.cliques, cache.services)
        for informer in (*children_kinds, cache.autoscalers, cache.claims, cache.domains):
            for item in informer.indexed(OWNER, pcs.metadata.uid):
                unwanted = (informer.resource.kind, item.metadata.name) not in wanted
                if unwanted and item.metadata.deletion_timestamp is None:
                    yield partial(self._writer.delete, informer, item)


def _controlled(found: Object, pcs: PodCliqueSet) -> bool:
    controller = found.metadata.controller
    return controller is None or controller.uid == pcs.metadata.uid


async def _refuse(problem: ReconcileError) -> None:
    raise problem
