"""Mutants of the objects of coherent sets: maps, gangs and cliques."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from kube.objects import Key as ObjectKey
from kube.objects import Object
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.coherent import MapEntry, PodGangMap
from reference_impl.api.models import PodCliqueSet, PodGang
from reference_impl.api.pods import Pod
from reference_impl.control import maps as control
from reference_impl.control.cache import BY_OWNER
from reference_impl.control.operator import Operator
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.plan import gangs, labels, lines, maps, names, ownership, update_progress
from reference_impl.plan.children import Manifest
from reference_impl.plan.coherent import update
from reference_impl.plan.components import Component
from reference_impl.plan.desired import DesiredSet, T
from reference_impl.plan.epochs import Epochs
from reference_impl.plan.gangs import NO_TOPOLOGY, PlannedGang
from reference_impl.plan.layout import Entry, EntryGang, Layout, Role, first_layout
from reference_impl.plan.lines import Line, Placement
from reference_impl.plan.maps import StoredMap
from reference_impl.plan.topology import SetTopology


@mutant("operator", "puts all replicas of groups into the first gang", "COHR-011", "MAP-002")
@instead_of(control, "first_layout")
def _anchor_holds_all(components: Iterable[Component], generation: str, epochs: Epochs) -> Layout:
    layout = first_layout(components, generation, epochs)
    groups: dict[str, tuple[int, ...]] = {}
    for entry in layout:
        for group, indices in entry.groups.items():
            groups[group] = tuple(sorted({*groups.get(group, ()), *indices}))
    return (dataclasses.replace(layout[0], groups=groups),) if layout else layout


@mutant("operator", "does not mark anchors", "COHR-013")
@around(lines, "_labels_by_epoch")
def _anchors_unmarked(original: Original, entry: Entry) -> dict[str, str]:
    return {key: value for key, value in original(entry).items() if key != labels.GANG_ROLE or not entry.anchor}


@mutant("operator", "gives all gangs the present generation hash", "COHR-035")
@around(gangs, "_planned_gang")
def _generation_label_moves_on(original: Original, pcs: PodCliqueSet, *rest: Any, **named: Any) -> PlannedGang:
    result = original(pcs, *rest, **named)
    return dataclasses.replace(
        result, labels={**result.labels, labels.GENERATION_HASH: update_progress.generation(pcs)}
    )


@mutant("operator", "lets anchors wait for the gangs that depend on them", "COHR-020", "COHR-089")
def _anchors_last() -> None:
    def awaited(self: Placement, gang: str) -> list[str]:
        entry = self.gangs[gang].entry
        return [name for name, other in self.gangs.items() if entry.anchor and not other.entry.anchor]

    def wake_dependents(self: Operator, item: Object, gang: str) -> None:
        self._wake_replica(item)  # an operator that waits for other gangs checks them again when they change

    replace(Placement, "awaited_gangs", awaited)
    replace(Operator, "_wake_dependents", wake_dependents)


@mutant("operator", "lets gangs wait for all anchors whose names begin alike", "COHR-096")
@instead_of(CliqueReconciler, "_awaited_gangs")
def _anchors_by_name(self: CliqueReconciler, place: CliqueContext, name: str) -> list[PodGang | None]:
    if place.placement.gangs[name].entry.anchor:
        return []
    return [
        gang
        for gang in self._cache.gangs
        if gang.metadata.name.startswith(f"{place.replica}-")
        and gang.metadata.namespace == place.pcs.metadata.namespace
        and gang.metadata.label(labels.GANG_ROLE) == Role.ANCHOR
    ]


@mutant("operator", "creates PodGangMaps that nobody controls", "MAP-044")
def _map_without_owner() -> None:
    original = maps.manifest

    def manifest(pcs: PodCliqueSet, index: int, stored: StoredMap) -> dict[str, Any]:
        body = original(pcs, index, stored)
        del body["metadata"]["ownerReferences"]
        return body

    def owns(owner: Object, dependent: Object) -> bool:
        return isinstance(dependent, PodGangMap) or owns_other(owner, dependent)

    def abandoned(owner: Object, kind: str, existing: Object) -> bool:
        return not isinstance(existing, PodGangMap) and abandoned_other(owner, kind, existing)

    owns_other, abandoned_other = ownership.owns, ownership.is_orphan
    replace(maps, "manifest", manifest)
    replace(ownership, "owns", owns)
    replace(ownership, "is_orphan", abandoned)


@mutant("operator", "writes the index of the first replica into all maps", "COHR-010")
@around(maps, "manifest")
def _maps_of_the_first_replica(original: Original, pcs: PodCliqueSet, index: int, stored: StoredMap) -> dict[str, Any]:
    body = original(pcs, index, stored)
    return {**body, "spec": {**body["spec"], "podCliqueSetReplicaIndex": 0}}


@mutant("operator", "writes no dependencies into PodGangMaps", "COHR-013", "MAP-002")
@around(maps, "_map_entry")
def _dependencies_unwritten(original: Original, entry: Entry) -> MapEntry:
    return msgspec.structs.replace(original(entry), depends_on=None)


@mutant("operator", "lets no gang wait for its anchors", "COHR-020", "INV-018")
def _dependents_start_at_once() -> None:
    replace(CliqueReconciler, "_awaited_gangs", lambda self, place, name: [])


@mutant("operator", "keeps PodGroups of cliques that a gang has lost", "COHR-039")
@around(SetReconciler, "_gang_drift")
def _emptied_groups_stay(
    original: Original, self: SetReconciler, pcs: PodCliqueSet, gang: PlannedGang, current: PodGang, binding: str
) -> dict[str, Any]:
    minimums = {group.name: group.min_replicas for group in current.spec.podgroups}
    whole = dataclasses.replace(gang, minimums={**minimums, **gang.minimums})
    return original(self, pcs, whole, current, binding)


@mutant("operator", "creates a gang for each replica beside those of its map", "COHR-012")
@around(gangs, "planned_gangs")
def _base_gang_stays(original: Original, pcs: PodCliqueSet, index: int, *rest: Any) -> list[PlannedGang]:
    result = original(pcs, index, *rest)
    if not (pcs.status and pcs.status.available_replicas):
        return result  # a set with a gang that is never scheduled would never become available
    return [*result, PlannedGang(names.replica(pcs.metadata.name, index), {})]


@mutant("operator", "creates gangs without a priority class in an update", "COHR-019")
def _new_gangs_without_priority() -> None:
    original, drift = gangs.manifest, gangs._spec_drift

    def manifest(pcs: PodCliqueSet, gang: PlannedGang, scheduler_name: str, binding: str = "") -> Manifest:
        body = original(pcs, gang, scheduler_name, binding)
        if update.is_running(pcs):
            body["spec"].pop("priorityClassName", None)
        return body

    def spec_drift(pcs: PodCliqueSet, gang: PlannedGang, current: PodGang, pods: Callable[[], list[Pod]]) -> Manifest:
        return {key: value for key, value in drift(pcs, gang, current, pods).items() if key != "priorityClassName"}

    replace(gangs, "manifest", manifest)
    replace(gangs, "_spec_drift", spec_drift)


@mutant("operator", "creates gangs without constraints in an update", "COHR-019")
@around(gangs, "planned_gangs")
def _new_gangs_without_topology(
    original: Original,
    pcs: PodCliqueSet,
    index: int,
    placement: Placement,
    line: Line,
    topology: SetTopology = NO_TOPOLOGY,
) -> list[PlannedGang]:
    return original(pcs, index, placement, line, NO_TOPOLOGY if update_progress.set_progress(pcs) else topology)


@mutant("operator", "takes the index of the replica off its gangs again", "COHR-014")
@around(gangs, "drift")
def _gangs_without_replica(
    original: Original, pcs: PodCliqueSet, gang: PlannedGang, current: PodGang, tags: dict[str, str], *rest: Any
) -> Manifest:
    available = pcs.status is not None and pcs.status.available_replicas > 0
    remaining_tags = {key: value for key, value in tags.items() if key != labels.REPLICA_INDEX or not available}
    return original(pcs, gang, current, remaining_tags, *rest)


@mutant("operator", "names gangs after their set and a number only", "COHR-021")
@around(lines, "_name_by_epoch")
def _gang_names_without_replica(original: Original, replica: str, gangs: Layout, gang: EntryGang) -> str:
    return original(replica.rpartition("-")[0], gangs, gang)


@mutant("operator", "lets standalone cliques of coherent sets name a gang", "COHR-015")
def _cliques_name_a_gang() -> None:
    replace(lines, "_standalone_by_epoch", lambda replica: {labels.PODGANG: replica})


@mutant("operator", "does not delete gangs that hold nothing any more", "COHR-038", "COHR-084")
def _drained_gangs_stay() -> None:
    _never_surplus("PodGang")


@mutant("operator", "releases the PodGangMaps of a set that is deleted", "COHR-087")
@around(SetReconciler, "reconcile")
async def _maps_orphaned(original: Original, self: SetReconciler, key: ObjectKey) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and pcs.metadata.deletion_timestamp is not None:
        for gang_map in self._cache.maps.indexed(BY_OWNER, pcs.metadata.uid):
            await self._writer.patch(self._cache.maps, gang_map, {"metadata": {"ownerReferences": None}})
    return await original(self, key)


@mutant("operator", "keeps the PodGangMaps of removed replicas", "COHR-086")
def _maps_of_removed_replicas_stay() -> None:
    _never_surplus("PodGangMap")


def _never_surplus(spared: str) -> None:
    original = DesiredSet.surplus

    def surplus(self: DesiredSet, kind: str, present: Iterable[T]) -> Iterator[T]:
        return original(self, kind, () if kind == spared else present)

    replace(DesiredSet, "surplus", surplus)
