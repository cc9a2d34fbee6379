"""Adoption. Children that have lost their controller are adopted before anything else is done for their owner (spec
CHG-DEL-07, decision 010). All reconcilers then consider only objects that their owner controls.

A child loses its controller when its owner is deleted with orphan propagation, in a restore from a backup, or when its
metadata is edited.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import orjson

from kube.informer import Informer
from kube.objects import Key, Object
from reference_impl.api import models
from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.api.pods import Pod
from reference_impl.control.cache import BY_OWNER, BY_OWNER_NAME, Cache, owner_name_key
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import children, labels, ownership, template_drift, update_progress
from reference_impl.plan.children import Manifest
from reference_impl.plan.revisions import Revision

log = logging.getLogger(__name__)


class Adoption:
    """Makes sets, scaling groups and cliques the controllers of their children."""

    def __init__(self, cache: Cache, writer: Writer) -> None:
        self._cache, self._writer = cache, writer
        self._suspect_cliques: set[Key] = set()
        """Cliques with a pod that has left the cache without being deleted."""

    async def adopt_for_set(self, pcs: PodCliqueSet, generation: Revision) -> PodCliqueSet:
        """Adopt the children of a set, and return the resulting set. A set without a generation hash in its status
        takes over the generation hash of its children. If that hash is outdated, an update starts."""
        cache = self._cache
        reference = children.set_reference(pcs)
        await self._adopt(pcs, reference, (cache.maps, cache.gangs, cache.groups, cache.cliques, *cache.secondary))
        if (
            update_progress.generation(pcs)
            or (earlier_generation := self._recorded_generation(pcs, generation)) is None
        ):
            return pcs
        body = {"status": {"currentGenerationHash": earlier_generation}}
        await self._writer.patch(cache.sets, pcs, body, status=True, guard=True)
        return cache.sets.get(*pcs.metadata.key) or pcs

    async def adopt_for_group(self, group: PodCliqueScalingGroup) -> None:
        """Adopt the cliques of a scaling group."""
        api = models.SCALING_GROUPS.api_version
        reference = children.owner_reference(api, "PodCliqueScalingGroup", group.metadata)
        await self._adopt(group, reference, (self._cache.cliques,))

    async def adopt_for_clique(self, clique: PodClique) -> None:
        """Adopt the pods of a clique, and restore the labels that identify its pods."""
        reference = children.owner_reference(models.PODCLIQUES.api_version, "PodClique", clique.metadata)
        await self._adopt(clique, reference, (self._cache.pods,))
        pods = self._cache.pods_of(clique)
        if clique.metadata.key in self._suspect_cliques:
            pods = [*pods, *await self._uncached_pods(clique, {pod.metadata.uid for pod in pods})]
            self._suspect_cliques.discard(clique.metadata.key)
        await await_all(
            self._writer.patch(self._cache.pods, pod, change)
            for pod in pods
            if not pod.terminating and (change := template_drift.label_patch(pod, identity_labels(clique)))
        )

    def suspect(self, pod: Pod) -> None:
        """Mark a clique for a search if one of its pods has left the cache without being deleted, because the pod may
        have lost the label by which the cache selects it."""
        controller = pod.metadata.controller
        if pod.metadata.deletion_timestamp is None and controller is not None:
            self._suspect_cliques.add((pod.metadata.namespace, controller.name))

    async def _uncached_pods(self, clique: PodClique, cached_uids: Iterable[str]) -> list[Pod]:
        """Return the pods that a clique controls but that are not in the cache."""
        items = await self._writer.list_pods(clique.metadata.namespace, "")
        decode = self._cache.pods.decode
        current_pods = [decode(orjson.dumps(item)) for item in items]
        return [pod for pod in current_pods if ownership.owns(clique, pod) and pod.metadata.uid not in cached_uids]

    async def _adopt(self, owner: Object, reference: Manifest, informers: Iterable[Informer[Any]]) -> None:
        kind, meta = reference["kind"], owner.metadata
        for informer in informers:
            candidates = informer.indexed(BY_OWNER_NAME, owner_name_key(kind, meta.namespace, meta.name))
            abandoned = [
                item
                for item in candidates
                if ownership.is_orphan(owner, kind, item) and self._may_adopt(informer, item)
            ]
            await await_all(
                self._writer.patch(informer, item, ownership.adoption_patch(reference, item), guard=True)
                for item in abandoned
            )
            if abandoned:
                log.info("%s %s has adopted %d of %s", kind, meta.name, len(abandoned), informer.resource.kind)

    def _may_adopt(self, informer: Informer[Any], item: Object) -> bool:
        """Return whether an object of this kind may be adopted here. Secondary resources without a controller are
        identified by all their labels when they are written. A Secret is never adopted (OBJ-236)."""
        if informer is self._cache.secrets:
            return False
        adoptable = informer not in self._cache.secondary or informer is self._cache.services
        return adoptable or item.metadata.controller is not None

    def _recorded_generation(self, pcs: PodCliqueSet, present: Revision) -> str | None:
        """Return the generation hash that the children of a set record. If they record several hashes, return an
        outdated hash."""
        groups = self._cache.groups.indexed(BY_OWNER, pcs.metadata.uid)
        owners = [pcs.metadata.uid, *(group.metadata.uid for group in groups)]
        cliques: list[PodClique] = [clique for uid in owners for clique in self._cache.cliques.indexed(BY_OWNER, uid)]
        generations = {
            clique.status.current_pod_clique_set_generation_hash for clique in cliques if clique.status is not None
        }
        for gang_map in self._cache.maps.indexed(BY_OWNER, pcs.metadata.uid):
            generations |= {entry.pod_clique_set_generation_hash for entry in gang_map.spec.entries}
        stored = [generation for generation in generations if generation]
        return min(stored, key=lambda generation: (present.has(generation), generation), default=None)


def identity_labels(clique: PodClique) -> dict[str, str | None]:
    """Return the labels that identify a pod of a clique."""
    tags = (labels.MANAGED_BY, labels.PART_OF, labels.REPLICA_INDEX, labels.SCALING_GROUP)
    pod_labels: dict[str, str | None] = {key: clique.metadata.label(key) for key in tags if clique.metadata.label(key)}
    if index := clique.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX):
        pod_labels[labels.SCALING_GROUP_REPLICA_INDEX] = index
    return {**pod_labels, labels.PODCLIQUE: clique.metadata.name}
