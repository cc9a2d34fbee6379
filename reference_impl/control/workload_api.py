"""The back-end for gangs on kube-scheduler: maintains the Workload, CompositePodGroups and PodGroups of each PodGang,
and supplies the plans that the reconcilers of pods and gangs follow (GREP-531).

The back-end serves the gangs of PodCliqueSets that name `default-scheduler`. The garbage collector deletes the objects
with their gang.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kube.client import Client
from kube.informer import Informer, typed_decoder
from kube.objects import Key
from kube.workqueue import WorkQueue
from reference_impl.api import models
from reference_impl.api.models import PodClique, PodCliqueSet, PodGang
from reference_impl.api.pods import Pod
from reference_impl.api.workload_api import WorkloadObject
from reference_impl.control.cache import BY_GANG, BY_OWNER, Cache, object_key
from reference_impl.control.writer import Writer
from reference_impl.plan import labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.workload_api import planned, standing
from reference_impl.plan.workload_api.difference import Change, Verb
from reference_impl.plan.workload_api.mode import SCHEDULER, Mode
from reference_impl.plan.workload_api.planned import Planned
from reference_impl.plan.workload_api.tree import has_preferred_topology

WORKERS = 8


class _Objects(Mapping[tuple[str, str], WorkloadObject]):
    """The objects of a namespace, by kind and name. Iteration yields only the objects of one gang."""

    def __init__(self, informers: Mapping[str, Informer[WorkloadObject]], gang: PodGang) -> None:
        self._informers, self._namespace, self._uid = informers, gang.metadata.namespace, gang.metadata.uid

    def __getitem__(self, key: tuple[str, str]) -> WorkloadObject:
        if (item := self._informers[key[0]].get(self._namespace, key[1])) is None:
            raise KeyError(key)
        return item

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for kind, informer in self._informers.items():
            for item in informer.indexed(BY_OWNER, self._uid):
                yield kind, item.metadata.name

    def __len__(self) -> int:
        return sum(1 for _ in self)


class GangPlans:
    """The plans of the gangs, computed from the caches. Without a mode, no gang has a plan."""

    def __init__(self, client: Client, cache: Cache, mode: Mode | None) -> None:
        self._cache, self.mode = cache, mode
        resources = mode.form.resources if mode is not None else ()
        self.informers = {
            resource.kind: Informer(client, resource, typed_decoder(WorkloadObject)) for resource in resources
        }
        for informer in self.informers.values():
            informer.add_index(BY_OWNER, _controller)

    def serves(self, gang: PodGang | None) -> bool:
        """Return whether a gang has a plan."""
        return self.mode is not None and gang is not None and gang.metadata.label(labels.SCHEDULER_NAME) == SCHEDULER

    def plan_of(self, gang: PodGang | None) -> Planned | None:
        """Return the plan of a gang, or None if the gang has no plan."""
        if gang is None or self.mode is None or not self.serves(gang):
            return None
        namespace, pods = gang.metadata.namespace, self._cache.pods.indexed(BY_GANG, object_key(*gang.metadata.key))
        cliques = ((group.name, self._cache.cliques.get(namespace, group.name)) for group in gang.spec.podgroups)
        templates = {name: clique.spec.minimum for name, clique in cliques if clique is not None}
        objects = _Objects(self.informers, gang)
        return planned.plan(gang, self._cache.set_of(gang), pods, objects, templates, self.mode)

    def with_pod_group(self, pod: Manifest) -> Manifest:
        """Return the manifest of a pod with the name of its PodGroup, which cannot be changed later (WL37-V18)."""
        meta = pod["metadata"]
        plan = self.plan_of(self._cache.gangs.get(meta["namespace"], meta["labels"].get(labels.PODGANG, "")))
        group = plan.groups.get(meta["labels"].get(labels.PODCLIQUE, "")) if plan is not None else None
        return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": group}}} if group else pod

    def possible_pods(self, gang: PodGang | None, clique: str, count: int) -> int:
        """Return the number of a clique's pods that a gang may have now, at most `count`."""
        if gang is None or self.mode is None or (plan := self.plan_of(gang)) is None:
            return count
        pods: list[Pod] = self._cache.pods.indexed(BY_GANG, object_key(*gang.metadata.key))
        clique_pods = [pod for pod in pods if pod.metadata.label(labels.PODCLIQUE) == clique]
        limit = standing.max_pods(plan.now, plan.minimums.get(clique, 1), clique_pods, self.mode)
        return count if limit is None else min(count, limit)

    def possible_clique(self, gang: PodGang | None, clique: PodClique) -> PodClique:
        """Return a clique with as many replicas as its gang may have now."""
        count = self.possible_pods(gang, clique.metadata.name, clique.spec.replicas)
        if count == clique.spec.replicas:
            return clique
        return msgspec.structs.replace(clique, spec=msgspec.structs.replace(clique.spec, replicas=count))

    def stale_pods(self, clique: str, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods of a clique that must be recreated in the current PodGroup of their gang."""
        if self.mode is None:
            return []
        by_gang: dict[Key, list[Pod]] = {}
        for pod in pods:
            by_gang.setdefault((pod.metadata.namespace, pod.metadata.label(labels.PODGANG)), []).append(pod)
        stale_pods: list[Pod] = []
        for key, gang_pods in by_gang.items():
            plan = self.plan_of(self._cache.gangs.get(*key))
            if plan is not None and (group := plan.groups.get(clique)):
                stale_pods += standing.stale_pods(gang_pods, group)
        return stale_pods

    def startable_pods(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods whose gate may be removed, because all objects of their gang are in place and they belong to
        the right PodGroup."""
        candidates = list(pods)
        if self.mode is None or not candidates:
            return candidates
        plans: dict[Key, Planned | None] = {}
        startable_pods: list[Pod] = []
        for pod in candidates:
            key = pod.metadata.namespace, pod.metadata.label(labels.PODGANG)
            if key not in plans:
                plans[key] = self.plan_of(self._cache.gangs.get(*key))
            if (plan := plans[key]) is None or (
                plan.in_place and pod.group == plan.groups.get(pod.metadata.label(labels.PODCLIQUE))
            ):
                startable_pods.append(pod)
        return startable_pods


def _controller(item: WorkloadObject) -> Iterable[str]:
    controller = item.metadata.controller
    return (controller.uid,) if controller is not None else ()


class WorkloadBackend:
    """Writes the Workload API objects of the gangs."""

    def __init__(self, plans: GangPlans, cache: Cache, writer: Writer, wake: Callable[[Key], None]) -> None:
        """`wake` is called with the key of a gang whose plan has changed in a way that affects its pods."""
        self._plans, self._cache, self._writer, self._wake = plans, cache, writer, wake
        self._queue: WorkQueue[Key] = WorkQueue()
        self._plan_states: dict[Key, tuple[Any, ...]] = {}
        """The part of each gang's last plan that its pods depend on."""
        self._warned: dict[Key, tuple[str, bool]] = {}
        """The reason why each gang was last refused, and whether a warning about its preferred topology was posted."""
        cache.gangs.add_handler(self._on_gang)
        cache.pods.add_handler(self._on_pod)
        cache.sets.add_handler(self._on_set)
        for informer in plans.informers.values():
            informer.add_handler(self._on_object)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The informers that must run for the back-end."""
        return tuple(self._plans.informers.values())

    @property
    def work(self) -> tuple[tuple[str, WorkQueue[Key], Callable[[Key], Awaitable[float | None]], int], ...]:
        """The name, queue, reconciler and number of workers."""
        return (("workload", self._queue, self.reconcile, WORKERS),)

    def _on_gang(self, event_type: str, old: PodGang | None, item: PodGang) -> None:
        def relevant_fields(gang: PodGang) -> tuple[Any, ...]:
            return gang.spec, gang.metadata.labels, gang.status.last_scheduled if gang.status else None

        if old is None or event_type == "DELETED" or relevant_fields(old) != relevant_fields(item):
            self._queue.add(item.metadata.key)

    def _on_pod(self, event_type: str, old: Pod | None, item: Pod) -> None:
        if old is not None and event_type != "DELETED" and (old.scheduled, old.active) == (item.scheduled, item.active):
            return
        key = item.metadata.namespace, item.metadata.label(labels.PODGANG)
        if self._plans.serves(self._cache.gangs.get(*key)):
            self._queue.add(key)

    def _on_set(self, event_type: str, old: PodCliqueSet | None, item: PodCliqueSet) -> None:
        """Trigger the gangs of a changed set, because the priority class of its pods may have changed."""
        if event_type == "DELETED" or (old is not None and old.metadata.generation == item.metadata.generation):
            return
        for gang in self._cache.gangs:
            meta = gang.metadata
            if (meta.namespace, meta.label(labels.PART_OF)) == item.metadata.key:
                self._queue.add(meta.key)

    def _on_object(self, event_type: str, old: WorkloadObject | None, item: WorkloadObject) -> None:
        meta = item.metadata
        if old is not None and event_type != "DELETED" and old.spec == item.spec and _have_equal_metadata(old, item):
            return  # only the status has changed, which the scheduler writes
        if (owner := meta.controller) is not None and owner.kind == models.PODGANGS.kind:
            self._queue.add((meta.namespace, owner.name))
        else:
            for key, (refusal, _) in self._warned.items():
                if refusal:
                    self._queue.add(key)

    async def reconcile(self, key: Key) -> float | None:
        """Bring the objects of a gang to their planned state. Return None, because the gang is never requeued after a
        delay."""
        gang = self._cache.gangs.get(*key)
        plan = self._plans.plan_of(gang)
        if gang is None or plan is None or gang.metadata.deletion_timestamp is not None:
            self._plan_states.pop(key, None)
            self._warned.pop(key, None)
            return None
        if gang.metadata.controller is None or self._cache.set_of(gang) is None:
            return None  # the gang belongs to no set, or is about to be garbage collected
        for change in plan.difference.changes:
            await self._apply(change, gang)
        await self._warn(gang, plan)
        plan = self._plans.plan_of(self._cache.gangs.get(*key)) or plan
        state = (plan.in_place, plan.now, plan.refusal, tuple(plan.groups.items()))
        if self._plan_states.get(key) != state:
            self._plan_states[key] = state
            self._wake(key)
        return None

    async def _apply(self, change: Change, gang: PodGang) -> None:
        """Make one write. Only the patch of a Workload has a resourceVersion precondition: it contains a list, and the
        scheduler also writes PodGroups."""
        informer = self._plans.informers[change.kind]
        item = informer.get(gang.metadata.namespace, change.name)
        match change.verb:
            case Verb.CREATE:
                await self._writer.create(informer, change.body)
            case Verb.PATCH if item is not None:
                await self._writer.patch(informer, item, change.body, guard=change.kind == "Workload")
            case Verb.REPLACE if item is not None:
                await self._writer.delete(informer, item)
                await self._writer.create(informer, change.body)
            case Verb.DELETE if item is not None:
                await self._writer.delete(informer, item)

    async def _warn(self, gang: PodGang, plan: Planned) -> None:
        """Post an event about anything that cannot be mapped, once for each reason."""
        key, ignores_preference = gang.metadata.key, has_preferred_topology(gang)
        refusal, was_mentioned = self._warned.get(key, ("", False))
        self._warned[key] = plan.refusal, ignores_preference
        if plan.refusal and plan.refusal != refusal:
            await self._writer.warn(models.PODGANGS, gang, planned.REFUSED, plan.refusal)
        if ignores_preference and not was_mentioned:
            await self._writer.warn(models.PODGANGS, gang, planned.PREFERRED, planned.PREFERRED_NOTE)


def _have_equal_metadata(old: WorkloadObject, item: WorkloadObject) -> bool:
    old_meta, new_meta = old.metadata, item.metadata
    return (old_meta.labels, old_meta.owner_references, old_meta.deletion_timestamp) == (
        new_meta.labels,
        new_meta.owner_references,
        new_meta.deletion_timestamp,
    )
