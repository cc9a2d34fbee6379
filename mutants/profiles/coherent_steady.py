"""Mutants in coherent sets between updates: scaling, adoption, repair."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kube.informer import Informer
from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.control import coherent as control
from reference_impl.control.cache import OWNER
from reference_impl.control.clique_gangs import Build, CliqueGangs
from reference_impl.control.live_gangs import Live
from reference_impl.control.scalinggroup import GroupReconciler
from reference_impl.control.writer import together
from reference_impl.plan import labels
from reference_impl.plan.coherent import steady, update
from reference_impl.plan.coherent.bootstrap import bootstrap
from reference_impl.plan.coherent.layout import Layout, anchors
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.coherent.naming import NameSource, newest, order
from reference_impl.plan.coherent.observed import ObservedPod
from reference_impl.plan.coherent.steady import IndexMapping, PodMapping


@mutant("added-replicas-share-a-gang", "operator", "puts added replicas into a gang that exists", "COHR-080")
def _added_replicas_share_a_gang() -> None:
    right = steady.scaled_group

    def scaled_group(mapping: IndexMapping, replicas: int, names: NameSource) -> dict[str, tuple[int, ...]]:
        found = right(mapping, replicas, names)
        new = {index for gang, own in found.items() if gang not in mapping for index in own}
        kept = {gang: own for gang, own in found.items() if gang in mapping}
        if not new or not kept:
            return found
        first = min(kept, key=order)
        return {**kept, first: tuple(sorted({*kept[first], *new}))}

    replace(steady, "scaled_group", scaled_group)


@mutant("first-replica-removed", "operator", "removes the replicas with the lowest indices", "COHR-082", "COHR-099")
def _first_replica_removed() -> None:
    right = steady.scaled_group

    def scaled_group(mapping: IndexMapping, replicas: int, names: NameSource) -> dict[str, tuple[int, ...]]:
        held = sorted(index for own in mapping.values() for index in own)
        if replicas >= len(held):
            return right(mapping, replicas, names)
        kept = set(held[len(held) - replicas :])
        found = {gang: tuple(index for index in own if index in kept) for gang, own in mapping.items()}
        return {gang: own for gang, own in found.items() if own}

    replace(steady, "scaled_group", scaled_group)


@mutant("added-pods-join-the-oldest", "operator", "lets added pods join the oldest gang", "COHR-081")
def _added_pods_join_the_oldest() -> None:
    replace(steady, "newest", lambda gangs: min(gangs, key=order, default=None))


@mutant("added-replicas-are-anchors", "operator", "makes the gangs of added replicas anchors", "COHR-080")
def _added_replicas_are_anchors() -> None:
    right = steady.rebuilt

    def rebuilt(
        layout: Layout,
        pods: Mapping[str, PodMapping | None],
        indices: Mapping[str, IndexMapping | None],
        generation: str,
        live: Layout = (),
    ) -> Layout:
        known = {entry.name for entry in layout}
        found = right(layout, pods, indices, generation, live)
        return tuple(e if e.name in known else dataclasses.replace(e, anchor=True) for e in found)

    replace(control, "rebuilt", rebuilt)


def scaled_with_gaps(mapping: IndexMapping, replicas: int, names: NameSource) -> dict[str, tuple[int, ...]]:
    """Removes the replicas of the oldest gangs first, and gives added ones the indices from the count on."""
    held = {gang: sorted(own) for gang, own in mapping.items()}
    count = sum(map(len, held.values()))
    for _ in range(count - replicas):
        single = [gang for gang, own in held.items() if len(own) == 1]
        held[min(single or [gang for gang, own in held.items() if own], key=order)].pop()
    new = list(range(count, replicas))
    added = {name: (index,) for name, index in zip(names(len(new)), new, strict=True)}
    return {gang: tuple(own) for gang, own in held.items() if own} | added


@mutant("scale-in-leaves-gaps", "operator", "removes the replicas of the oldest gangs first", "COHR-082")
def _scale_in_leaves_gaps() -> None:
    replace(steady, "scaled_group", scaled_with_gaps)


@mutant("oldest-gang-shrinks-first", "operator", "removes the pods of the oldest gangs first", "COHR-083")
def _oldest_gang_shrinks_first() -> None:
    def removed_first(mapping: PodMapping, pods: Sequence[ObservedPod]) -> list[str]:
        return [gang for gang in sorted(mapping, key=order) for _ in range(mapping[gang])]

    replace(steady, "_removed_first", removed_first)


@mutant("shrunk-gangs-restart", "operator", "recreates the pods of a gang that loses a replica", "COHR-085")
def _shrunk_gangs_restart() -> None:
    right = CliqueGangs.balance
    sizes: dict[str, int] = {}

    async def balance(self: CliqueGangs, pcs: PodCliqueSet, clique: PodClique, held: ReplicaMap, build: Build) -> None:
        now = {entry.name: sum(map(len, entry.groups.values())) for entry in held.layout}
        shrunk = {gang for gang, size in now.items() if size < sizes.get(gang, 0)}
        sizes.update(now)
        if not update.running(pcs):
            lost = [pod for pod in self._cache.pods_of(clique) if pod.metadata.label(labels.PODGANG) in shrunk]
            await together(self._writer.delete(self._cache.pods, pod) for pod in lost)
        await right(self, pcs, clique, held, build)

    replace(CliqueGangs, "balance", balance)


@mutant("termination-starts-over", "operator", "terminates a replica into the gangs of a first one", "COHR-089")
def _termination_starts_over() -> None:
    right = control.CoherentSets.before_termination

    async def before_termination(self: control.CoherentSets, pcs: PodCliqueSet, index: int) -> None:
        if (held := self._maps.at(pcs, index)) is not None:
            components, generation = self._maps.components(pcs, index), self._maps.templates(pcs).generation
            await self._write(pcs, index, held, bootstrap(components, generation, self._names(pcs, index)))
        forgotten = {"status": {"podGangMapping": None}}
        informers: tuple[Informer[Any], ...] = (self._cache.cliques, self._cache.groups)
        for informer in informers:
            for item in informer.indexed(OWNER, pcs.metadata.uid):
                if self._maps.index_of(item) == index:
                    await self._writer.patch(informer, item, forgotten, status=True)
        await right(self, pcs, index)

    replace(control.CoherentSets, "before_termination", before_termination)


@mutant("edited-maps-decide", "operator", "lets the PodGangMap decide which gangs hold replicas", "COHR-095")
def _edited_maps_decide() -> None:
    right = GroupReconciler._mapping

    def mapping(
        self: GroupReconciler, pcs: PodCliqueSet, group: PodCliqueScalingGroup, held: ReplicaMap, name: str
    ) -> dict[str, list[int]]:
        return right(self, pcs, msgspec.structs.replace(group, status=None), held, name)

    replace(GroupReconciler, "_mapping", mapping)


@mutant("added-pods-join-the-newest-anchor", "operator", "lets added pods join the newest anchor", "COHR-081")
def _added_pods_join_the_newest_anchor() -> None:
    right = steady.scaled_clique

    def scaled_clique(
        mapping: PodMapping,
        replicas: int,
        pods: Sequence[ObservedPod],
        layout: Layout,
        generation: str,
        names: NameSource,
    ) -> dict[str, int]:
        gang, added = newest(entry.name for entry in anchors(layout)), replicas - sum(mapping.values())
        if gang is None or added <= 0:
            return right(mapping, replicas, pods, layout, generation, names)
        return {**mapping, gang: mapping.get(gang, 0) + added}

    replace(steady, "scaled_clique", scaled_clique)


@mutant("lost-maps-stay-lost", "operator", "does not restore a PodGangMap that is deleted", "COHR-076", "COHR-094")
def _lost_maps_stay_lost() -> None:
    async def adopt(self: control.CoherentSets, pcs: PodCliqueSet) -> None:
        return None

    replace(control.CoherentSets, "adopt", adopt)


@mutant("adoption-starts-over", "operator", "gives sets that join new gangs", "COHR-090", "COHR-091")
def _adoption_starts_over() -> None:
    def adopted(self: control.CoherentSets, pcs: PodCliqueSet, index: int, live: Live) -> Layout:
        names = self._names(pcs, index)
        return bootstrap(self._maps.components(pcs, index), live.generation(), names)

    replace(control.CoherentSets, "_adopted", adopted)
