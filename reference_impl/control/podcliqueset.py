"""The PodCliqueSet reconciler: finalizer, generation hash, secondary resources, the objects of each replica, status.

The reconciler never waits, because the reconcilers of gangs and cliques fill gangs and remove scheduling gates (spec
OBJ-301, CHG-DEL-02).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from kube.errors import ApiError
from kube.informer import Informer
from kube.objects import Key
from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueSet, PodGang
from reference_impl.api.pods import Pod
from reference_impl.control.cache import BY_OWNER, Cache
from reference_impl.control.coherent import CoherentProgress
from reference_impl.control.features import NO_FEATURES, Features
from reference_impl.control.gang_migration import GangMigration
from reference_impl.control.last_errors import LastErrors, shortest_wait
from reference_impl.control.layouts import Layouts
from reference_impl.control.maps import MapWriter
from reference_impl.control.migration import HashMigration
from reference_impl.control.ownership import Adoption
from reference_impl.control.secondary_resources import SecondaryResources
from reference_impl.control.termination import Termination
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import (
    children,
    conditions,
    desired,
    gang_migration,
    gangs,
    labels,
    names,
    ownership,
    reconcile_error,
    revisions,
    statuses,
    template_drift,
    topology,
    update_condition,
    update_progress,
    update_set_replicas,
)
from reference_impl.plan.coherent import update
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.desired import Child, DesiredReplica, DesiredSet
from reference_impl.plan.reconcile_error import ReconcileError
from reference_impl.plan.revisions import Revision
from reference_impl.runtime.clock import now

Write = Callable[[], Awaitable[None]]

MAX_CONCURRENT_REPLICAS = 16
"""Maximum number of replicas that are written concurrently. More would only queue up in the API server."""
STATUS_SECONDS = 5.0
"""The interval, in seconds, between status writes of a set during a long reconcile. The first reconcile of thousands of
replicas takes minutes."""


class SetReconciler:
    """Brings one PodCliqueSet at a time to its desired state."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        last_errors: LastErrors,
        scheduler_name: str,
        migration: HashMigration,
        layouts: Layouts,
        maps: MapWriter,
        adoption: Adoption,
        features: Features = NO_FEATURES,
    ) -> None:
        self._adoption = adoption
        self._layouts, self._maps, self._coherent_progress = layouts, maps, CoherentProgress(layouts, maps)
        self._gang_migration = GangMigration(cache, writer, layouts)
        self._cache, self._writer, self._scheduler, self._features = cache, writer, scheduler_name, features
        self._migration, self._policy = migration, layouts.policy
        self._informers: dict[str, Informer[Any]] = {
            informer.resource.kind: informer
            for informer in (cache.services, cache.cliques, cache.groups, cache.gangs, cache.maps)
        }
        self._secondary = SecondaryResources(cache, writer)
        self._termination = Termination(cache, writer, maps.prepare_termination)
        self.last_errors = last_errors

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one set. Return the requeue delay in seconds, or None if no retry is needed."""
        pcs = self._cache.sets.get(*key)
        if pcs is None:
            return None
        if pcs.metadata.deletion_timestamp is not None:
            await self._writer.remove_finalizer(self._cache.sets, pcs, labels.SET_FINALIZER)
            return None
        pcs = await self._add_finalizer(pcs)
        pcs = await self._take_over(pcs)
        pcs, generation = await self._observe_generation(pcs)
        return await self._sync(pcs, generation)

    async def _add_finalizer(self, pcs: PodCliqueSet) -> PodCliqueSet:
        existing = pcs.metadata.finalizers or ()
        if labels.SET_FINALIZER in existing:
            return pcs
        finalizers = {"metadata": {"finalizers": [*existing, labels.SET_FINALIZER]}}
        await self._writer.patch(self._cache.sets, pcs, finalizers, guard=True)
        return self._cached_set(pcs)

    async def _take_over(self, pcs: PodCliqueSet) -> PodCliqueSet:
        """Migrate and repair existing objects: adopt orphans, migrate objects of earlier operators and earlier kinds of
        gangs, and restore lost PodGangMaps. These steps do not change a set that this operator has created."""
        pcs = await self._adoption.adopt_for_set(pcs, revisions.set_revision(pcs, self._policy))
        pcs = await self._migration.migrate(pcs)
        pcs = await self._gang_migration.start(pcs)
        await self._maps.restore(pcs)
        await self._gang_migration.assign(pcs)
        return pcs

    async def _observe_generation(self, pcs: PodCliqueSet) -> tuple[PodCliqueSet, Revision]:
        """Record a new generation in the status before anything is changed because of it."""
        generation = revisions.set_revision(pcs, self._policy)
        if generation.has(update_progress.generation(pcs)):
            return pcs, generation
        await self._write_status(pcs, generation, observed=False)
        return self._cached_set(pcs), generation

    async def _sync(self, pcs: PodCliqueSet, generation: Revision) -> float | None:
        """Bring the children of the set to their desired state, and write the status. Return the requeue delay in
        seconds, or None if no retry is needed."""
        problem: ReconcileError | None = None
        wait: float | None = None
        step: Step | None = None
        try:
            wait = await self._termination.terminate_in_set(pcs)
            step = await self._maps.renew(pcs)
            async with self._status_updates(pcs, generation):
                await self._sync_children(pcs)
        except ReconcileError as caught:
            problem = caught
        except ApiError as error:
            await self.last_errors.report_refusal(pcs.metadata.key, "ERR_SYNC_PODCLIQUESET", error)
            raise
        await self._write_status(self._cached_set(pcs), generation, observed=problem is None, step=step)
        return shortest_wait(wait, await self.last_errors.report(pcs.metadata.key, problem))

    def _cached_set(self, pcs: PodCliqueSet) -> PodCliqueSet:
        """Return the set as it is in the cache, which contains the operator's own writes."""
        return self._cache.sets.get(*pcs.metadata.key) or pcs

    async def _write_status(
        self, pcs: PodCliqueSet, generation: Revision, *, observed: bool, step: Step | None = None
    ) -> None:
        """Write the status of the set and the progress of its update. `generation` is the revision of the spec that is
        being acted on; if the status has another one, an update starts (CHG-RU-02)."""
        clique, group = (
            self._cache.child_finder(self._cache.cliques, pcs),
            self._cache.child_finder(self._cache.groups, pcs),
        )
        members_of = partial(self._cache.child_finder, self._cache.cliques)
        observed_set = update_set_replicas.ObservedSet(pcs, clique, group, members_of)
        if update.is_coherent(pcs):
            progress = self._coherent_progress.progress(pcs, generation, observed_set, step, now())
        else:
            progress = update.progress_without_scope(update_set_replicas.progress(pcs, generation, observed_set, now()))
        observed = observed and (progress is None or progress.update_ended_at is not None)
        status = statuses.set_status(pcs, generation.hash, clique, group, observed, progress)
        in_progress = progress is not None and progress.update_ended_at is None
        parts = (
            [part for index in range(pcs.spec.replicas) for part in observed_set.parts(index)] if in_progress else []
        )
        status.conditions = conditions.with_condition(
            status.conditions, update_condition.set_condition(parts, now(), in_progress=in_progress)
        )
        topology_condition = topology.condition(pcs, self._set_topology(pcs), now())
        status.conditions = (
            conditions.with_condition(status.conditions, topology_condition)
            if topology_condition
            else conditions.without_condition(status.conditions, topology.CONDITION)
        )
        if gang_migration.is_running(pcs) and self._gang_migration.is_complete(pcs):
            status.conditions = conditions.without_condition(status.conditions, gang_migration.CONDITION)
        await self._writer.write_status(self._cache.sets, pcs, status)

    @asynccontextmanager
    async def _status_updates(self, pcs: PodCliqueSet, generation: Revision) -> AsyncIterator[None]:
        """Write the status at intervals while the body runs. Errors are ignored, because the write at the end of the
        reconcile raises them."""
        update_task = asyncio.create_task(self._write_status_repeatedly(pcs, generation))
        try:
            yield
        finally:
            update_task.cancel()
            await asyncio.gather(update_task, return_exceptions=True)

    async def _write_status_repeatedly(self, initial: PodCliqueSet, generation: Revision) -> None:
        while True:
            await asyncio.sleep(STATUS_SECONDS)
            pcs = self._cache.sets.get(*initial.metadata.key)
            # The progress of a coherent update, or of an update to another spec, is known only to the reconcile that
            # advances it.
            if (
                pcs is not None
                and pcs.metadata.generation == initial.metadata.generation
                and not update.is_coherent(pcs)
            ):
                await self._write_status(pcs, generation, observed=False)

    def _set_topology(self, pcs: PodCliqueSet) -> topology.SetTopology:
        """Return the topology that the set refers to."""
        enabled, name = self._features.topology, topology.binding_name(pcs)
        return topology.set_topology(pcs, enabled, self._cache.topologies.get("", name) if enabled and name else None)

    async def _sync_children(self, pcs: PodCliqueSet) -> None:
        """Create missing objects, correct objects that differ, and delete surplus objects."""
        set_topology = self._set_topology(pcs)
        placements = [self._layouts.placement_at(pcs, index) for index in range(pcs.spec.replicas)]
        known_placements = [placement for placement in placements if placement is not None]
        if len(known_placements) < len(placements):
            return  # nothing may be deleted because of a missing map; the next reconcile restores it
        line, domains = self._layouts.line, self._features.mnnvl
        target = desired.desired_set(pcs, known_placements.__getitem__, line, set_topology, domains=domains)
        await self._secondary.ensure(target)
        templates = children.standalone_templates(pcs)
        current_revisions = {
            template.name: revisions.template_revision(pcs, template, self._policy) for template in templates
        }
        writes = [list(self._writes(pcs, replica, set_topology, current_revisions)) for replica in target.replicas]
        limit = asyncio.Semaphore(MAX_CONCURRENT_REPLICAS)

        async def in_order(writes: list[Write]) -> None:
            async with limit:
                for write in writes:
                    await write()

        await await_all(in_order(replica_writes) for replica_writes in writes if replica_writes)
        await await_all(write() for write in list(self._surplus_deletions(target)))

    def _writes(
        self,
        pcs: PodCliqueSet,
        replica: DesiredReplica,
        set_topology: topology.SetTopology,
        current_revisions: Mapping[str, Revision],
    ) -> Iterator[Write]:
        """Yield the writes that bring one replica to its desired state, in order. `current` holds the current revisions
        of the standalone cliques' templates. Name conflicts are raised after all other writes."""
        conflicts: list[Write] = []
        for child in replica.objects:
            if isinstance(child, desired.DesiredAutoscaler):
                if child.name_taken:
                    conflicts.append(self._conflict(pcs, child))
                else:
                    yield partial(self._writer.ensure, self._cache.autoscalers, child.manifest)
                continue
            existing = self._informers[child.kind].get(pcs.metadata.namespace, child.name)
            if existing is not None and not ownership.owns(pcs, existing):
                conflicts.append(self._conflict(pcs, child))
                if child.kind != "Service":
                    continue
            yield from self._child_writes(pcs, replica.index, child, existing, set_topology, current_revisions)
        yield from conflicts

    def _conflict(self, pcs: PodCliqueSet, child: Child) -> Write:
        return partial(_raise_problem, reconcile_error.conflict(child.kind, pcs.metadata.namespace, child.name))

    def _child_writes(
        self,
        pcs: PodCliqueSet,
        index: int,
        child: Child,
        existing: Any,
        set_topology: topology.SetTopology,
        current_revisions: Mapping[str, Revision],
    ) -> Iterator[Write]:
        """Yield the writes that create or correct one object of a replica. Yield nothing if the object is as
        desired."""
        cache, writer = self._cache, self._writer
        match child:
            case desired.StandaloneClique(template=template):
                yield from self._clique_writes(pcs, index, template, existing, current_revisions[template.name])
            case desired.ScalingGroup(config=config):
                if existing is None:
                    yield partial(writer.create, cache.groups, children.scaling_group(pcs, index, config))
                elif change := template_drift.group_patch(config, existing):
                    yield partial(writer.patch, cache.groups, existing, change)
            case desired.DesiredGang(planned=gang):
                if existing is None:
                    manifest = gangs.manifest(pcs, gang, self._scheduler, set_topology.binding)
                    yield partial(writer.create, cache.gangs, manifest)
                elif drift := self._gang_drift(pcs, gang, existing, set_topology.binding):
                    yield partial(writer.patch, cache.gangs, existing, drift, guard=True)
            case desired.DesiredMap():
                return  # written earlier in the reconcile
            case _:
                if existing is None:
                    yield partial(writer.create, cache.services, children.service(pcs, index))
                elif not children.is_service_correct(pcs, index, existing):
                    yield partial(writer.ensure, cache.services, children.service(pcs, index))

    def _clique_writes(
        self, pcs: PodCliqueSet, index: int, template: CliqueTemplate, existing: PodClique | None, current: Revision
    ) -> Iterator[Write]:
        line = self._layouts.line

        def manifest() -> children.Manifest:
            channels = self._features.mnnvl
            return children.standalone_clique(pcs, index, template, line, channels=channels, policy=self._policy)

        if existing is None:
            yield partial(self._writer.create, self._cache.cliques, manifest())
            return
        desired_labels = line.standalone_labels(names.replica(pcs.metadata.name, index))
        if change := template_drift.label_patch(existing, desired_labels):
            yield partial(self._writer.patch, self._cache.cliques, existing, change)
        if template_drift.is_outdated(existing, current) and self._layouts.may_update(pcs, index, template.name):
            yield partial(self._writer.renew, self._cache.cliques, existing, manifest())
        if change := template_drift.clique_patch(template, existing):
            yield partial(self._writer.patch, self._cache.cliques, existing, change)

    def _gang_drift(
        self, pcs: PodCliqueSet, gang: gangs.PlannedGang, existing: PodGang, binding: str
    ) -> dict[str, Any]:
        """Return the merge patch that corrects a gang, or an empty dict if the gang is as desired."""

        def pods() -> list[Pod]:
            cliques = [self._cache.cliques.get(pcs.metadata.namespace, name) for name in gang.minimums]
            return [pod for clique in cliques if clique is not None for pod in self._cache.pods_of(clique)]

        tags = {**gangs.gang_labels(pcs, self._scheduler, existing.metadata.labels), **gang.labels}
        return gangs.drift(pcs, gang, existing, tags, binding, pods)

    def _surplus_deletions(self, target: DesiredSet) -> Iterator[Write]:
        """Yield the deletions of surplus children of the set. A gang is deleted after its last pod, whose deletion
        triggers the set. An operator that is killed in between leaves no pods without a gang (COH-163)."""
        cache, namespace = self._cache, target.pcs.metadata.namespace
        grove_informers: tuple[Informer[Any], ...] = (
            cache.gangs,
            cache.groups,
            cache.cliques,
            cache.services,
            cache.maps,
        )
        for informer in (*grove_informers, cache.autoscalers, cache.claims, cache.domains):
            for item in target.surplus(informer.resource.kind, informer.indexed(BY_OWNER, target.pcs.metadata.uid)):
                if informer is not cache.gangs or not cache.has_members(namespace, item.metadata.name):
                    yield partial(self._writer.delete, informer, item)


async def _raise_problem(problem: ReconcileError) -> None:
    raise problem
