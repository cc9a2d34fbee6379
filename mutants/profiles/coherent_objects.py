"""Mutants in the objects of coherent sets: maps, gangs, cliques."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kube.objects import Key as ObjectKey
from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.api.coherent import MapEntry
from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueSet, PodGang, PodGroup
from reference_impl.api.pods import Pod
from reference_impl.control import coherent as control
from reference_impl.control.cache import OWNER
from reference_impl.control.gang_maps import GangMaps
from reference_impl.control.operator import Operator
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.plan import children, conditions, labels, names, template_drift, update_progress
from reference_impl.plan import gangs as all_gangs
from reference_impl.plan.children import Manifest
from reference_impl.plan.coherent import conditions as of_gangs
from reference_impl.plan.coherent import gangs, layout, maps, naming, update
from reference_impl.plan.coherent.bootstrap import bootstrap
from reference_impl.plan.coherent.components import Component
from reference_impl.plan.coherent.layout import Entry, Layout
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.coherent.naming import NameSource
from reference_impl.plan.desired import DesiredSet, T
from reference_impl.plan.gangs import NO_TOPOLOGY, PlannedGang
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.topology import Topology


@mutant("anchor-holds-all", "operator", "puts all replicas of scaling groups into the first gang", "COHR-011")
def _anchor_holds_all() -> None:
    def one_gang(components: Iterable[Component], generation: str, names: NameSource) -> Layout:
        found = bootstrap(components, generation, names)
        groups: dict[str, tuple[int, ...]] = {}
        for entry in found:
            for group, own in entry.groups.items():
                groups[group] = tuple(sorted({*groups.get(group, ()), *own}))
        return (dataclasses.replace(found[0], groups=groups),) if found else found

    replace(control, "bootstrap", one_gang)


@mutant("anchors-unmarked", "operator", "does not mark anchors", "COHR-013")
def _anchors_unmarked() -> None:
    replace(gangs, "own_labels", lambda entry: {labels.GENERATION_HASH: entry.generation})


@mutant("generation-label-moves-on", "operator", "gives all gangs the present generation hash", "COHR-035")
def _generation_label_moves_on() -> None:
    right = gangs.planned

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        present = dataclasses.replace(entry, generation=update_progress.generation(pcs))
        return right(pcs, index, present, found, topology)

    replace(gangs, "planned", planned)


@mutant("minimums-kept", "operator", "never releases the minimum of standalone cliques", "COHR-017")
def _minimums_kept() -> None:
    right = gangs.planned

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        return right(pcs, index, entry, None, topology)

    replace(gangs, "planned", planned)
    replace(gangs, "released", lambda gang, groups, shares: groups)


@mutant("all-minimums-released", "operator", "releases the minimum of scaling groups, too", "COHR-017")
def _all_minimums_released() -> None:
    right = gangs.planned

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        whole = right(pcs, index, entry, found, topology)
        if found is None or not gangs.ever_scheduled(found):
            return whole
        return dataclasses.replace(whole, minimums=dict.fromkeys(whole.minimums, 0))

    replace(gangs, "planned", planned)


@mutant("anchors-last", "operator", "lets anchors wait for the gangs that depend on them", "COHR-020", "COHR-089")
def _anchors_last() -> None:
    def may_start(self: GangMaps, pcs: PodCliqueSet, held: ReplicaMap, gang: str) -> bool:
        entry = held.entry(gang)
        awaited = [other.name for other in held.layout if not other.anchor] if entry and entry.anchor else []
        found = (self._cache.gangs.get(pcs.metadata.namespace, name) for name in awaited)
        return all(other is not None and gangs.ever_scheduled(other) for other in found)

    right = Operator._on_gang_of_map

    def on_gang_of_map(self: Operator, old: PodGang | None, item: PodGang) -> None:
        right(self, old, item)
        self._wake_replica(item)  # an operator that waits for other gangs looks when they have changed

    replace(GangMaps, "may_start", may_start)
    replace(Operator, "_on_gang_of_map", on_gang_of_map)


@mutant("anchors-by-name", "operator", "lets gangs wait for all anchors whose names begin alike", "COHR-096")
def _anchors_by_name() -> None:
    def may_start(self: GangMaps, pcs: PodCliqueSet, held: ReplicaMap, gang: str) -> bool:
        prefix, entry = f"{gang.rpartition('-')[0]}-", held.entry(gang)
        alike = [found for found in self._cache.gangs if found.metadata.name.startswith(prefix)]
        anchors = [
            found
            for found in alike
            if found.metadata.namespace == pcs.metadata.namespace and found.metadata.label(labels.ANCHOR) == "true"
        ]
        return entry is not None and (entry.anchor or all(map(gangs.ever_scheduled, anchors)))

    replace(GangMaps, "may_start", may_start)


@mutant("map-without-owner", "operator", "creates PodGangMaps that nobody controls", "COHR-010")
def _map_without_owner() -> None:
    right = maps.manifest

    def manifest(pcs: PodCliqueSet, index: int, wanted: ReplicaMap) -> dict[str, Any]:
        found = right(pcs, index, wanted)
        del found["metadata"]["ownerReferences"]
        return found

    replace(maps, "manifest", manifest)


@mutant("dependencies-unwritten", "operator", "writes no dependencies into PodGangMaps", "COHR-013")
def _dependencies_unwritten() -> None:
    right = layout.to_entries

    def to_entries(found: Layout) -> list[MapEntry]:
        return [msgspec.structs.replace(entry, depends_on=None) for entry in right(found)]

    replace(layout, "to_entries", to_entries)


@mutant("dependents-start-at-once", "operator", "lets no gang wait for its anchors", "COHR-020", "INV-018")
def _dependents_start_at_once() -> None:
    replace(gangs, "may_start", lambda layout, entry, gang, abandoned=(): True)


@mutant("minimums-return", "operator", "restores the minimum of standalone cliques once a gang is Ready", "COHR-017")
def _minimums_return() -> None:
    right, release = gangs.planned, gangs.released

    def ready(gang: PodGang | None) -> bool:
        return conditions.is_true(gang.status.conditions if gang is not None and gang.status else None, of_gangs.READY)

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        return right(pcs, index, entry, None if ready(found) else found, topology)

    def released(gang: PodGang, groups: list[PodGroup], shares: Mapping[str, int]) -> list[PodGroup]:
        return groups if ready(gang) else release(gang, groups, shares)

    replace(gangs, "planned", planned)
    replace(gangs, "released", released)


@mutant("emptied-groups-stay", "operator", "keeps PodGroups of cliques that a gang has lost", "COHR-039")
def _emptied_groups_stay() -> None:
    right = gangs.planned

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        whole = right(pcs, index, entry, found, topology)
        known = {group.name: group.min_replicas for group in found.spec.podgroups} if found else {}
        return dataclasses.replace(whole, minimums={**known, **whole.minimums})

    replace(gangs, "planned", planned)


@mutant("base-gang-stays", "operator", "creates a gang for each replica beside those of its map", "COHR-012")
def _base_gang_stays() -> None:
    right = SetReconciler._mapped

    def mapped(self: SetReconciler, pcs: PodCliqueSet, levels: Topology, index: int) -> list[PlannedGang] | None:
        found = right(self, pcs, levels, index)
        return None if found is None else [*found, PlannedGang(names.replica(pcs.metadata.name, index), {})]

    replace(SetReconciler, "_mapped", mapped)


@mutant("new-gangs-without-priority", "operator", "creates gangs without a priority class in an update", "COHR-019")
def _new_gangs_without_priority() -> None:
    right, drift = all_gangs.manifest, all_gangs._spec_drift

    def manifest(pcs: PodCliqueSet, index: int, gang: PlannedGang, scheduler_name: str, binding: str = "") -> Manifest:
        found = right(pcs, index, gang, scheduler_name, binding)
        if update.running(pcs):
            found["spec"].pop("priorityClassName", None)
        return found

    def spec_drift(pcs: PodCliqueSet, gang: PlannedGang, found: PodGang, pods: Callable[[], list[Pod]]) -> Manifest:
        return {key: value for key, value in drift(pcs, gang, found, pods).items() if key != "priorityClassName"}

    replace(all_gangs, "manifest", manifest)
    replace(all_gangs, "_spec_drift", spec_drift)


@mutant("new-gangs-without-topology", "operator", "creates gangs without constraints in an update", "COHR-019")
def _new_gangs_without_topology() -> None:
    right = gangs.planned

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        return right(pcs, index, entry, found, NO_TOPOLOGY if update_progress.of_set(pcs) else topology)

    replace(gangs, "planned", planned)


@mutant("gangs-without-replica", "operator", "takes the index of the replica off its gangs again", "COHR-014")
def _gangs_without_replica() -> None:
    right = all_gangs.gang_labels

    def gang_labels(
        pcs: PodCliqueSet, index: int, scheduler_name: str, existing: dict[str, str] | None
    ) -> dict[str, str]:
        found = right(pcs, index, scheduler_name, existing)
        # Without the label it does not find its own gangs, and no set would ever be available.
        available = pcs.status is not None and pcs.status.available_replicas > 0
        return {key: value for key, value in found.items() if key != labels.REPLICA_INDEX or not available}

    replace(all_gangs, "gang_labels", gang_labels)


@mutant("gang-names-without-replica", "operator", "names gangs after their set and a number only", "COHR-021")
def _gang_names_without_replica() -> None:
    right = naming.Names.take

    def take(self: naming.Names, prefix: str, count: int, existing: Iterable[str]) -> list[str]:
        return right(self, prefix.rpartition("-")[0], count, existing)

    replace(naming.Names, "take", take)


@mutant("cliques-name-a-gang", "operator", "lets standalone cliques of coherent sets name a gang", "COHR-015")
def _cliques_name_a_gang() -> None:
    right = children.standalone_clique

    def standalone_clique(
        pcs: PodCliqueSet,
        index: int,
        template: CliqueTemplate,
        *,
        channels: bool = False,
        policy: Policy = STANDARD,
        mapped: bool = False,
    ) -> Manifest:
        return right(pcs, index, template, channels=channels, policy=policy)

    def without_gang(found: PodClique) -> Manifest:
        return {}

    replace(children, "standalone_clique", standalone_clique)
    replace(template_drift, "without_gang", without_gang)


@mutant("drained-gangs-stay", "operator", "does not delete gangs that hold nothing any more", "COHR-038", "COHR-084")
def _drained_gangs_stay() -> None:
    _never_surplus("PodGang")


@mutant("maps-orphaned", "operator", "releases the PodGangMaps of a set that is deleted", "COHR-087")
def _maps_orphaned() -> None:
    right = SetReconciler.reconcile

    async def reconcile(self: SetReconciler, key: ObjectKey) -> float | None:
        pcs = self._cache.sets.get(*key)
        if pcs is not None and pcs.metadata.deletion_timestamp is not None:
            for held in self._cache.maps.indexed(OWNER, pcs.metadata.uid):
                await self._writer.patch(self._cache.maps, held, {"metadata": {"ownerReferences": None}})
        return await right(self, key)

    replace(SetReconciler, "reconcile", reconcile)


@mutant("maps-of-removed-replicas-stay", "operator", "keeps the PodGangMaps of removed replicas", "COHR-086")
def _maps_of_removed_replicas_stay() -> None:
    _never_surplus("PodGangMap")


def _never_surplus(kept: str) -> None:
    right = DesiredSet.surplus

    def surplus(self: DesiredSet, kind: str, present: Iterable[T]) -> Iterator[T]:
        return right(self, kind, () if kind == kept else present)

    replace(DesiredSet, "surplus", surplus)
