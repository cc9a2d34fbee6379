"""The operator: caches, queues, reconcilers, and the events that trigger each reconciler."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from kube.client import Client
from kube.informer import Informer
from kube.leases import Elector
from kube.objects import Key, Object
from kube.workqueue import WorkQueue, work
from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet, PodGang, PodGangMap
from reference_impl.api.pods import Pod
from reference_impl.control.cache import BY_GANG, BY_REPLICA, Cache, object_key, replica_keys
from reference_impl.control.computedomain import DomainReconciler
from reference_impl.control.features import NO_FEATURES, Features
from reference_impl.control.kai import KaiBackend
from reference_impl.control.last_errors import LastErrors, differs_only_in_errors, errors_changed
from reference_impl.control.layouts import Layouts
from reference_impl.control.maps import MapWriter
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.control.migration import HashMigration
from reference_impl.control.ownership import Adoption
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.control.podgang import GangReconciler
from reference_impl.control.scalinggroup import GroupReconciler
from reference_impl.control.workload_api import GangPlans, WorkloadBackend
from reference_impl.control.writer import Writer
from reference_impl.plan import gang_migration, gangs, labels, names, ownership, topology, update_progress
from reference_impl.plan.coherent import conditions as gang_conditions
from reference_impl.plan.epochs import EpochSource
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.lines import MAPS, Line
from reference_impl.runtime import logs
from reference_impl.runtime.waiting import retry_until_answered

T = TypeVar("T", bound=Object)
Work = tuple[str, WorkQueue[Key], Callable[[Key], Awaitable[float | None]], int]
"""The name, queue, reconciler and number of workers of one kind of work."""
SETTLE_SECONDS = 0.02
"""Events that arrive within this time, in seconds, cause a single reconcile. Sets have a longer settle time, because
reconciling a set covers all its replicas."""
SET_SETTLE_SECONDS = 0.2
SET_SETTLE_PER_REPLICA = 0.0004
"""The settle time per replica, in seconds. Above 500 replicas, it exceeds SET_SETTLE_SECONDS. A reconcile takes about
80 µs per replica, so a set that changes constantly is being reconciled about a sixth of the time."""
WORKERS = 24
STATUS_WORKERS = 3
INIT_IMAGE = "registry.example/grove-initc:0.1.0"
"""Image of the init container that waits for other cliques. The fake cluster only simulates the container; a real
cluster needs Grove's image."""


class Operator:
    """Watches the cluster and reconciles until cancelled."""

    def __init__(
        self,
        client: Client,
        *,
        scheduler_name: str,
        features: Features = NO_FEATURES,
        init_image: str = INIT_IMAGE,
        hash_policy: Policy = STANDARD,
        line: Line = MAPS,
        metrics: OperatorMetrics | None = None,
    ) -> None:
        features = replace(features, maps=features.maps or line.stores_layouts)
        self._client, self.metrics = client, metrics or OperatorMetrics()
        self.metrics.count_requests(client)
        self.cache = Cache(client, features)
        writer = Writer(client, self.metrics)
        self._sets: WorkQueue[Key] = WorkQueue(settle=SET_SETTLE_SECONDS)
        self._cliques: WorkQueue[Key] = WorkQueue(settle=SETTLE_SECONDS)
        self._clique_statuses: WorkQueue[Key] = WorkQueue(settle=SETTLE_SECONDS)
        self._groups: WorkQueue[Key] = WorkQueue(settle=SETTLE_SECONDS)
        self._gangs: WorkQueue[Key] = WorkQueue(settle=SETTLE_SECONDS)
        self._domains: WorkQueue[Key] = WorkQueue(settle=SETTLE_SECONDS)
        layouts = self._layouts = Layouts(self.cache, hash_policy, line)
        self._plans = GangPlans(client, self.cache, features.workload_api)
        errors = LastErrors(self.cache.sets, writer, self.cache.errors_of_parts)
        migration = HashMigration(self.cache, writer, self._sets.add, errors, hash_policy)
        maps = MapWriter(self.cache, writer, layouts, EpochSource(time.time_ns))
        adoption = self._adoption = Adoption(self.cache, writer)
        sets = SetReconciler(self.cache, writer, errors, scheduler_name, migration, layouts, maps, adoption, features)
        cliques = CliqueReconciler(
            self.cache,
            writer,
            scheduler_name,
            init_image,
            migration,
            layouts,
            adoption,
            plans=self._plans,
            of_kai=features.kai,
        )
        groups = GroupReconciler(self.cache, writer, migration, layouts, adoption, features)
        self._last_errors = (
            (self._sets, sets.last_errors),
            (self._groups, groups.last_errors),
            (self._cliques, cliques.last_errors),
        )
        self._work: tuple[Work, ...] = (
            ("podcliqueset", self._sets, sets.reconcile, 2),
            ("podclique", self._cliques, cliques.reconcile, WORKERS),
            ("podclique-status", self._clique_statuses, cliques.reconcile_status, STATUS_WORKERS),
            ("podcliquescalinggroup", self._groups, groups.reconcile, 8),
            ("podgang", self._gangs, GangReconciler(self.cache, writer, layouts, self._plans).reconcile, WORKERS),
            ("computedomain", self._domains, DomainReconciler(self.cache, writer).reconcile, 1),
        )
        self._informers = self.cache.informers
        self._add_backends(client, writer, features)
        for name, queue, _, workers in self._work:
            self.metrics.measure_controller(name, queue, workers)
        self._add_handlers()
        self.ready = asyncio.Event()

    def _add_backends(self, client: Client, writer: Writer, features: Features) -> None:
        """Add the work and the informers of the back-ends for other schedulers."""
        if features.kai:
            bindings = self.cache.topologies if features.topology else None
            backend = KaiBackend(client, writer, self.cache.set_of, bindings)
            self._work, self._informers = (*self._work, *backend.work), (*self._informers, *backend.informers)
        if features.workload_api is not None:
            workload_backend = WorkloadBackend(self._plans, self.cache, writer, self._wake_members)
            self._work, self._informers = (
                (*self._work, *workload_backend.work),
                (*self._informers, *workload_backend.informers),
            )

    def _add_handlers(self) -> None:
        self.cache.sets.add_handler(self._on_set)
        self.cache.cliques.add_handler(self._on_clique)
        self.cache.groups.add_handler(self._on_group)
        self.cache.gangs.add_handler(self._on_gang)
        self.cache.maps.add_handler(self._on_map)
        self.cache.pods.add_handler(self._on_pod)
        for informer in self.cache.secondary:
            informer.add_handler(self._on_secondary)
        self.cache.claim_templates.add_handler(self._on_claim_template)
        self.cache.topologies.add_handler(self._on_topology)
        self.cache.domains.add_handler(self._on_domain)

    async def run(self, elector: Elector | None = None, grace: float = 0.0) -> None:
        """Start watching at once, and start writing when this process leads (at once without an elector). When
        cancelled, let running reconciles finish within `grace` seconds. Raises LeadershipLost, in an exception group,
        if the elector loses the lease."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            for informer in self._informers:
                await informer.wait_until_synced()
            gc.freeze()  # listed objects are long-lived, so exempt them from garbage collection
            self.ready.set()
            if elector is not None:
                await elector.acquire()
                self._client.before_write = elector.check
                group.create_task(elector.hold())
                # The last writes of the former leader may not have arrived in the cache yet, and pod names are random:
                # without this step, some pods might be created twice.
                await asyncio.gather(*(retry_until_answered(informer.catch_up) for informer in self._informers))
            workers = [
                group.create_task(work(queue, logs.with_subject(name, reconcile), count))
                for name, queue, reconcile, count in self._work
            ]
            try:
                await asyncio.wait(workers)
            except asyncio.CancelledError:
                if grace and (elector is None or elector.leads):
                    for _, queue, _, _ in self._work:
                        queue.close()
                    await asyncio.wait(workers, timeout=grace)
                raise

    def is_idle(self, seconds: float = 0.0) -> bool:
        """Return whether nothing is being reconciled or becomes due within `seconds`."""
        return all(queue.is_idle(seconds) for _, queue, _, _ in self._work)

    def _wake_members(self, key: Key) -> None:
        """Trigger a gang and its cliques."""
        self._gangs.add(key)
        for clique in self.cache.cliques.indexed(BY_GANG, object_key(*key)):
            self._cliques.add(clique.metadata.key)
        if (gang := self.cache.gangs.get(*key)) is not None:
            for group in gang.spec.podgroups:
                self._cliques.add((key[0], group.name))

    def _wake_set(self, item: Object) -> None:
        if pcs := item.metadata.label(labels.PART_OF):
            key = (item.metadata.namespace, pcs)
            self._sets.add_after(key, self._settle_seconds(self.cache.sets.get(*key)))

    @staticmethod
    def _settle_seconds(pcs: PodCliqueSet | None) -> float:
        """Return the settle time in seconds for a set that is reconciled because of a change outside its spec."""
        return max(SET_SETTLE_SECONDS, SET_SETTLE_PER_REPLICA * (pcs.spec.replicas if pcs is not None else 0))

    def _on_set(self, event_type: str, old: PodCliqueSet | None, item: PodCliqueSet) -> None:
        if event_type == "MODIFIED" and differs_only_in_errors(old, item):
            return
        if old is not None and old.metadata.generation == item.metadata.generation:
            self._sets.add_after(item.metadata.key, self._settle_seconds(item))
        else:
            self._sets.add(item.metadata.key)
            namespace = item.metadata.namespace
            for group in self.cache.groups:
                if group.metadata.namespace == namespace and group.metadata.label(labels.PART_OF) == item.metadata.name:
                    self._groups.add(group.metadata.key)

        if old is not None:
            self._trigger_turns(old, item)

    def _trigger_turns(self, old: PodCliqueSet, item: PodCliqueSet) -> None:
        """Trigger the cliques and scaling groups in which an update starts, continues or ends. Also trigger the gangs
        after a change of the strategy, which decides who writes their conditions; the next sub-step of a coherent
        update may wait for these conditions."""
        migration_ended = gang_migration.is_running(old) and not gang_migration.is_running(item)
        affects_all = (
            migration_ended
            or update_progress.generation(old) != update_progress.generation(item)
            or update_progress.strategy(old) != update_progress.strategy(item)
        )
        turns = {str(update_progress.current_replica(old)), str(update_progress.current_replica(item))}
        if not affects_all and len(turns) == 1:
            return

        def part_keys(informer: Informer[T]) -> Iterator[Key]:
            for part in informer:
                meta = part.metadata
                is_part = (meta.namespace, meta.label(labels.PART_OF)) == item.metadata.key
                if is_part and (affects_all or ownership.replica_index(part) in turns):
                    yield meta.key

        for clique in part_keys(self.cache.cliques):
            self._cliques.add(clique)
            self._clique_statuses.add(clique)
        for group in part_keys(self.cache.groups):
            self._groups.add(group)
        if update_progress.strategy(old) != update_progress.strategy(item):
            for gang in part_keys(self.cache.gangs):
                self._gangs.add(gang)

    def _on_secondary(self, event_type: str, old: Any, item: Any) -> None:
        """Trigger the owner of an object that another client has deleted or changed. Status changes and our own writes
        trigger nothing."""
        if event_type != "DELETED" and (old is None or _have_equal_fields(old, item)):
            if old is not None and item is not old:
                self._wake_for_legacy(item)
            return
        owner = item.metadata.controller or (old and old.metadata.controller)
        queues = {"PodCliqueScalingGroup": self._groups, "PodClique": self._cliques}
        if owner is not None and owner.kind in queues:
            queues[owner.kind].add((item.metadata.namespace, owner.name))
        else:
            self._wake_set(item)

    def _wake_for_legacy(self, item: Object) -> None:
        """Trigger a set that still has a token Secret of an earlier version, because the last pod that uses it may have
        ended (OBJ-245)."""
        name = names.legacy_secret(item.metadata.label(labels.PART_OF))
        if self.cache.secrets.get(item.metadata.namespace, name) is not None:
            self._wake_set(item)

    def _on_claim_template(self, event_type: str, old: Any, item: Object) -> None:
        """Trigger all objects whose last reconcile failed, because a missing template may have been created
        (OBJ-823)."""
        if event_type == "ADDED":
            for queue, last_errors in self._last_errors:
                for key in last_errors.failed_keys:
                    queue.add(key)

    def _on_topology(self, event_type: str, old: Any, item: Object) -> None:
        for pcs in self.cache.sets:
            if topology.binding_name(pcs) == item.metadata.name:
                self._sets.add(pcs.metadata.key)

    def _on_domain(self, event_type: str, old: Any, item: Object) -> None:
        if event_type != "DELETED" and item.metadata.deletion_timestamp is not None:
            self._domains.add(item.metadata.key)

    def _wake_for_errors(self, event_type: str, old: Any, item: Any) -> None:
        """Trigger the set of a clique or scaling group whose errors have changed, so that the set reports them."""
        if errors_changed(old, None if event_type == "DELETED" else item):
            self._wake_set(item)

    def _on_group(self, event_type: str, old: PodCliqueScalingGroup | None, item: PodCliqueScalingGroup) -> None:
        self._wake_for_errors(event_type, old, item)
        if event_type == "MODIFIED" and differs_only_in_errors(old, item):
            return
        self._groups.add(item.metadata.key)
        self._wake_set(item)

    def _on_clique(self, event_type: str, old: PodClique | None, item: PodClique) -> None:
        self._wake_for_errors(event_type, old, item)
        if event_type == "MODIFIED" and differs_only_in_errors(old, item):
            return
        self._cliques.add(item.metadata.key)
        self._clique_statuses.add(item.metadata.key)
        group = item.metadata.label(labels.SCALING_GROUP)
        if group:
            self._groups.add((item.metadata.namespace, group))
        elif event_type != "ADDED":
            self._wake_set(item)
        if old is None or event_type == "DELETED" or old.metadata.generation != item.metadata.generation:
            self._gangs.add((item.metadata.namespace, item.metadata.label(labels.PODGANG)))

    def _on_gang(self, event_type: str, old: PodGang | None, item: PodGang) -> None:
        self._gangs.add(item.metadata.key)
        if event_type == "DELETED" or item.metadata.controller is None:  # a gang without a controller can be adopted
            self._wake_set(item)
        initialization_unchanged = old is not None and gangs.is_initialized(old) == gangs.is_initialized(item)
        if not initialization_unchanged or (old is not None and old.spec != item.spec):
            groups = (*item.spec.podgroups, *(old.spec.podgroups if old is not None else ()))
            for clique in {group.name for group in groups}:
                self._cliques.add((item.metadata.namespace, clique))
        old_status, new_status = (old.status if old else None), item.status
        scheduled_changed, ready_changed = (
            getattr(old_status, field, None) != getattr(new_status, field, None)
            for field in ("last_scheduled", "last_ready")
        )
        if scheduled_changed:
            self._wake_dependents(item, item.metadata.name)
        if scheduled_changed or ready_changed:  # the next sub-step of a coherent update may wait for this
            self._wake_set(item)

    def _on_map(self, event_type: str, old: PodGangMap | None, item: PodGangMap) -> None:
        """Trigger everything in the replica of a changed map. A deleted map is restored by the reconciler of its
        set."""
        if item.metadata.controller is None:
            self._wake_set(item)  # the set may adopt it
        if event_type != "DELETED" and old is not None and old.spec == item.spec:
            return
        if event_type != "ADDED":
            self._wake_set(item)
        for index in replica_keys(item):
            for gang in self.cache.gangs.indexed(BY_REPLICA, index):
                self._gangs.add(gang.metadata.key)
        self._wake_replica(item)

    def _wake_replica(self, item: Object) -> None:
        """Trigger the cliques and scaling groups of the replica that an object belongs to."""
        for index in replica_keys(item):
            for clique in self.cache.cliques.indexed(BY_REPLICA, index):
                self._cliques.add(clique.metadata.key)
            for group in self.cache.groups.indexed(BY_REPLICA, index):
                self._groups.add(group.metadata.key)

    def _wake_dependents(self, item: Object, gang: str) -> None:
        """Trigger the cliques in gangs that wait for `gang`, in the replica that the object belongs to."""
        placement = self._layouts.placement_of(item)
        for name in placement.dependents(gang) if placement is not None else ():
            waiting = self.cache.gangs.get(item.metadata.namespace, name)
            for group in waiting.spec.podgroups if waiting is not None else ():
                self._cliques.add((item.metadata.namespace, group.name))

    def _on_pod(self, event_type: str, old: Pod | None, item: Pod) -> None:
        controller = item.metadata.controller
        clique = item.metadata.label(labels.PODCLIQUE) or (controller.name if controller is not None else "")
        namespace = item.metadata.namespace
        owner = self.cache.cliques.get(namespace, clique)
        if owner is None or owner.metadata.deletion_timestamp is None:  # the pods of a deleted clique no longer matter
            self._cliques.add((namespace, clique))
            self._clique_statuses.add((namespace, clique))
        if event_type == "DELETED":
            self._adoption.suspect(item)
            self._wake_for_legacy(item)
        is_living = not item.terminating and event_type != "DELETED"
        gang_key = (namespace, item.metadata.label(labels.PODGANG))
        if not is_living and not self.cache.has_members(*gang_key):
            self._wake_set(item)
        if old is None or event_type == "DELETED" or old.terminating == is_living:
            self._gangs.add(gang_key)
        elif old.ready != item.ready or old.scheduled != item.scheduled:
            gang, pcs = self.cache.gangs.get(*gang_key), self.cache.set_of(item)
            if gang is not None and (
                (pcs is not None and gang_conditions.operator_writes(pcs, gang)) or self._plans.serves(gang)
            ):
                self._gangs.add(gang_key)
        if item.scheduled and (old is None or not old.scheduled):
            self._wake_dependents(item, gang_key[1])


_IGNORED_FIELDS = ("metadata", "has_token")
"""Fields of secondary resources that other clients write, or that are compared separately."""


def _have_equal_fields(old: Any, item: Any) -> bool:
    """Return whether two states of a secondary resource are equal in all fields that the operator writes."""
    old_meta, new_meta = old.metadata, item.metadata
    return (
        old_meta.labels == new_meta.labels
        and old_meta.annotations == new_meta.annotations
        and old_meta.owner_references == new_meta.owner_references
        and all(getattr(old, f) == getattr(item, f) for f in item.__struct_fields__ if f not in _IGNORED_FIELDS)
    )
