"""Mutants of the deletion of sets and of single objects by users."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from kube.informer import Informer
from kube.objects import Key, Object
from mutants.registry import mutant
from mutants.replacement import Original, around, replace
from reference_impl.api.models import PodCliqueScalingGroup, PodCliqueSet
from reference_impl.control.cache import BY_OWNER
from reference_impl.control.last_errors import shortest_wait
from reference_impl.control.operator import Operator
from reference_impl.control.ownership import Adoption
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.control.scalinggroup import GroupReconciler
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import children, conditions, labels, termination, update_progress
from reference_impl.plan.children import Manifest
from reference_impl.plan.lines import Placement


@mutant("operator", "keeps creating cliques for a set that is being deleted", "LIFE-011")
@around(SetReconciler, "reconcile")
async def _foreground_forgotten(original: Original, self: SetReconciler, key: Key) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and pcs.metadata.deletion_timestamp is not None:
        for template in children.standalone_templates(pcs):
            manifest = children.standalone_clique(pcs, 0, template, self._layouts.line)
            if self._cache.cliques.get(pcs.metadata.namespace, manifest["metadata"]["name"]) is None:
                await self._writer.create(self._cache.cliques, manifest)
    return await original(self, key)


@mutant("operator", "never lets go of a set that is deleted in the foreground", "LIFE-005")
@around(SetReconciler, "reconcile", memory=set)
async def _foreground_unfinished(
    original: Original, foreground: set[str], self: SetReconciler, key: Key
) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and "foregroundDeletion" in (pcs.metadata.finalizers or ()):
        foreground.add(pcs.metadata.uid)
    return None if pcs is not None and pcs.metadata.uid in foreground else await original(self, key)


@mutant("operator", "takes owner and labels from the pods of a deleted set, which go on", "LIFE-002")
@around(SetReconciler, "reconcile")
async def _pods_set_free(original: Original, self: SetReconciler, key: Key) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and pcs.metadata.deletion_timestamp is not None:
        pods = await self._writer.list_pods(key[0], f"{labels.PART_OF}={key[1]}")
        for manifest in pods:
            pod = self._cache.pods.get(key[0], manifest["metadata"]["name"])
            if pod is not None:
                free = {"labels": None, "ownerReferences": None}
                await self._writer.patch(self._cache.pods, pod, {"metadata": free})
    return await original(self, key)


@mutant("operator", "removes a deleted set only once no countdown of its cliques runs", "LIFE-006")
@around(SetReconciler, "reconcile")
async def _countdown_first(original: Original, self: SetReconciler, key: Key) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and pcs.metadata.deletion_timestamp is not None:
        for clique in self._cache.cliques:
            belongs = clique.metadata.label(labels.PART_OF) == pcs.metadata.name
            reported = clique.status.conditions if clique.status else None
            if belongs and clique.metadata.namespace == key[0] and conditions.is_true(reported, termination.BREACHED):
                return 0.5
    return await original(self, key)


@mutant("operator", "mistakes a set for an earlier one of its name", "LIFE-007")
@around(SetReconciler, "reconcile", memory=dict)
async def _name_remembered(
    original: Original, first_uids: dict[Key, str], self: SetReconciler, key: Key
) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and first_uids.setdefault(key, pcs.metadata.uid) != pcs.metadata.uid:
        return None
    return await original(self, key)


@mutant("operator", "awaits the hash of a set in the next one of its name", "LIFE-007")
def _hash_awaited_by_name() -> None:
    original, pause = SetReconciler.reconcile, 5.0
    awaited: dict[Key, tuple[str, float]] = {}

    async def reconcile(self: SetReconciler, key: Key) -> float | None:
        pcs = self._cache.sets.get(*key)
        if pcs is None or pcs.metadata.deletion_timestamp is not None:
            return await original(self, key)
        before = update_progress.generation(pcs)
        written, until = awaited.get(key, (before, 0.0))
        if written != before:
            return pause
        if time.monotonic() >= until:
            awaited.pop(key, None)
        wait = await original(self, key)
        after = update_progress.generation(self._cache.sets.get(*key) or pcs)
        if after != before:
            awaited[key] = (after, time.monotonic() + pause)
        return shortest_wait(wait, pause if key in awaited else None)

    replace(SetReconciler, "reconcile", reconcile)


@mutant("operator", "never recreates a standalone clique", "LIFE-008")
@around(Writer, "create", memory=set)
async def _clique_made_once(
    original: Original, created: set[tuple[str, str, str]], self: Writer, informer: Any, manifest: dict[str, Any]
) -> None:
    metadata = manifest["metadata"]
    if manifest["kind"] == "PodClique" and metadata["ownerReferences"][0]["kind"] == "PodCliqueSet":
        clique_key = (metadata["namespace"], metadata["name"], metadata["ownerReferences"][0]["uid"])
        if clique_key in created:
            return
        created.add(clique_key)
    await original(self, informer, manifest)


@mutant("operator", "recreates a deleted clique without pods", "LIFE-008")
@around(children, "_clique_manifest", memory=set)
def _clique_made_empty(
    original: Original,
    created: set[tuple[str, str]],
    pcs: PodCliqueSet,
    template: Any,
    name: str,
    *rest: Any,
    **options: Any,
) -> children.Manifest:
    manifest = original(pcs, template, name, *rest, **options)
    if (pcs.metadata.uid, name) in created:
        manifest["spec"]["replicas"] = 0
    created.add((pcs.metadata.uid, name))
    return manifest


@mutant("operator", "deletes all cliques of a group's replica that lacks one", "LIFE-012")
@around(GroupReconciler, "_sync_cliques", memory=set)
async def _siblings_recreated(
    original: Original,
    complete: set[tuple[str, str]],
    self: GroupReconciler,
    pcs: PodCliqueSet,
    group: PodCliqueScalingGroup,
    placement: Placement,
) -> None:
    cliques = self._cache.cliques.indexed(BY_OWNER, group.metadata.uid)
    for index in {clique.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX) for clique in cliques}:
        replica_key = (group.metadata.uid, index)
        siblings = [c for c in cliques if c.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX) == index]
        if len(siblings) == len(group.spec.clique_names):
            complete.add(replica_key)
        elif replica_key in complete:
            complete.discard(replica_key)
            await await_all(self._writer.delete(self._cache.cliques, clique) for clique in siblings)
    await original(self, pcs, group, placement)


@mutant("operator", "creates no cliques for a recreated scaling group", "LIFE-009")
@around(children, "member_cliques", memory=dict)
def _group_made_empty(
    original: Original,
    owners: dict[tuple[str, str], str],
    pcs: PodCliqueSet,
    group: PodCliqueScalingGroup,
    *rest: Any,
    **options: Any,
) -> Iterator[children.Manifest]:
    if owners.setdefault((pcs.metadata.uid, group.metadata.name), group.metadata.uid) == group.metadata.uid:
        yield from original(pcs, group, *rest, **options)


@mutant("operator", "recreates deleted secondary resources only after another event", "LIFE-010")
def _secondary_resources_unwatched() -> None:
    replace(Operator, "_on_secondary", lambda self, kind, old, item: None)


async def adopt_nothing(self: Adoption, owner: Object, reference: Manifest, informers: Iterable[Informer[Any]]) -> None:
    """Adopt nothing: leave objects without a controller as they are."""


@mutant("operator", "never becomes the controller of what has none", "LIFE-013", "LIFE-014", "LIFE-015")
def _orphans_ignored() -> None:
    replace(Adoption, "_adopt", adopt_nothing)
