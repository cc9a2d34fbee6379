"""Mutants of the entries of PodGangMaps, and of the gangs, cliques and pods that follow the entries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mutants.profiles.coherent_objects import _never_surplus
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.models import PodClique, PodCliqueSet, PodGang
from reference_impl.control import maps as control
from reference_impl.control.cache import Cache
from reference_impl.control.layouts import Layouts
from reference_impl.control.maps import MapWriter
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.plan import adoption, children, fitting, gangs, labels, lines, maps, members, names, update_progress
from reference_impl.plan.children import Manifest
from reference_impl.plan.components import Component, Kind
from reference_impl.plan.epochs import Epochs, EpochSource
from reference_impl.plan.fitting import _LayoutFitter
from reference_impl.plan.layout import Entry, EntryGang, Layout, Role, first_layout, tidy_layout
from reference_impl.plan.lines import Line, Placement
from reference_impl.plan.maps import StoredMap
from reference_impl.plan.observed import Observed


@mutant("operator", "names PodGangMaps after what they are", "MAP-001")
def _map_misnamed() -> None:
    replace(names, "gang_map", lambda pcs, index: f"{pcs}-{index}-map")


@mutant("operator", "gives every PodGangMap the index of the first replica", "MAP-001")
@around(maps, "manifest")
def _map_of_the_first_replica(original: Original, pcs: PodCliqueSet, index: int, stored: StoredMap) -> dict[str, Any]:
    body = original(pcs, index, stored)
    return {**body, "spec": {**body["spec"], "podCliqueSetReplicaIndex": 0}}


@mutant("operator", "puts the further replicas of a new set into the ScaleOut entry", "MAP-002")
@instead_of(control, "first_layout")
def _tail_forgotten(components: Iterable[Component], generation: str, epochs: Epochs) -> Layout:
    layout = first_layout(components, generation, epochs)
    tail_groups: dict[str, tuple[int, ...]] = {}
    for entry in layout:
        tail_groups |= entry.groups if entry.role is Role.TAIL else {}
    return tuple(
        dataclasses.replace(entry, groups=tail_groups) if entry.role is Role.SCALE_OUT else entry
        for entry in layout
        if entry.role is not Role.TAIL
    )


@mutant("operator", "gives a new replica's Anchor the latest epoch", "MAP-002")
@instead_of(control, "first_layout")
def _epochs_backwards(components: Iterable[Component], generation: str, epochs: Epochs) -> Layout:
    layout = first_layout(components, generation, lambda count: epochs(count)[::-1])
    return tuple(sorted(layout, key=lambda entry: int(entry.key)))


@mutant("operator", "names gangs by epoch and index, without their group", "MAP-065")
@instead_of(lines, "_name_by_epoch")
def _gangs_without_their_group(replica: str, entries: Layout, gang: EntryGang) -> str:
    return f"{replica}-{gang.entry.key}" + ("" if gang.entry.anchor else f"-{gang.index}")


@mutant("operator", "creates gangs without their last PodClique", "MAP-003")
@around(gangs, "_planned_gang")
def _gangs_without_their_last_clique(
    original: Original, pcs: PodCliqueSet, *rest: Any, **named: Any
) -> gangs.PlannedGang:
    result = original(pcs, *rest, **named)
    fewer = dict(list(result.minimums.items())[:-1])
    return dataclasses.replace(result, minimums=fewer) if fewer and not rest[2].entry.anchor else result


@mutant("operator", "lets all running pods name the Anchor's gang", "MAP-004", "MAP-008")
def _ready_pods_join_the_anchor() -> None:
    original = CliqueReconciler._relabel

    async def relabel(self: CliqueReconciler, place: CliqueContext) -> None:
        await original(self, place)
        anchor = next(iter(place.placement.gangs))
        for pod in self._cache.pods_of(place.clique):
            if pod.active and pod.ready and pod.metadata.label(labels.PODGANG) != anchor:
                body = {"metadata": {"labels": {labels.PODGANG: anchor}}}
                await self._writer.patch(self._cache.pods, pod, body)

    async def balance(self: CliqueReconciler, place: CliqueContext) -> None:
        if not any(pod.ready for pod in self._cache.pods_of(place.clique)):  # or it would replace these pods
            await balanced(self, place)

    balanced = CliqueReconciler._sync_pods
    replace(CliqueReconciler, "_relabel", relabel)
    replace(CliqueReconciler, "_sync_pods", balance)


def _without(key: str) -> None:
    original = lines._labels_by_epoch
    replace(lines, "_labels_by_epoch", lambda entry: {k: v for k, v in original(entry).items() if k != key})


@mutant("operator", "does not label gangs with their generation", "MAP-005")
def _gangs_without_generation() -> None:
    _without(labels.GENERATION_HASH)


@mutant("operator", "does not label gangs with their role", "MAP-005")
def _gangs_without_role() -> None:
    _without(labels.GANG_ROLE)


@mutant("operator", "lets pods of further replicas name the gang they wait for", "MAP-006")
@around(children, "gang_labels")
def _base_gang_still_named(original: Original, placement: Placement, line: Line, gang: str) -> dict[str, str | None]:
    awaited = placement.awaited_gangs(gang)
    return {**original(placement, line, gang), **({labels.BASE_PODGANG: awaited[0]} if awaited else {})}


@mutant("operator", "does not change the Anchor of a scaled clique", "MAP-007", "MAP-010")
@around(Layouts, "components")
def _anchor_keeps_its_count(original: Original, self: Layouts, pcs: PodCliqueSet, index: int) -> list[Component]:
    declared = {component.name: component.spec.replicas for component in children.standalone_templates(pcs)}
    return [
        dataclasses.replace(component, replicas=declared[component.key.name])
        if component.key.kind is Kind.CLIQUE
        else component
        for component in original(self, pcs, index)
    ]


@mutant("operator", "adds replicas of groups to the Tail entry", "MAP-011")
@around(_LayoutFitter, "ensure_scale_out_entry")
def _added_replicas_return_to_the_tail(original: Original, self: _LayoutFitter) -> str:
    place = original(self)
    return next((entry.key for entry in self.entries.values() if entry.role is Role.TAIL), place)


@mutant("operator", "keeps a Tail entry that holds nothing any more", "MAP-012")
@instead_of(fitting, "tidy_layout")
def _emptied_tail_stays(entries: Iterable[Entry]) -> Layout:
    every = list(entries)
    empty_tails = [entry for entry in every if entry.is_empty and entry.role is Role.TAIL]
    return tuple(sorted([*tidy_layout(every), *empty_tails], key=lambda entry: int(entry.key)))


@mutant("operator", "begins with the same epoch in each replica, also after a scale-in", "MAP-013")
@instead_of(EpochSource, "take")
def _epochs_used_again(self: EpochSource, count: int, existing: Iterable[str]) -> list[str]:
    start = max([int(epoch) for epoch in existing if epoch.isdecimal()], default=1_700_000_000_000_000_000) + 1
    return [str(start + offset) for offset in range(count)]


@mutant("operator", "keeps the maps of replicas that are scaled in", "MAP-014")
def _maps_outlive_their_replica() -> None:
    _never_surplus("PodGangMap")


@mutant("operator", "never fills a PodGangMap that holds nothing", "MAP-015", "MAP-023")
@around(MapWriter, "complete_layout")
def _empty_maps_stay_empty(
    original: Original, self: MapWriter, pcs: PodCliqueSet, index: int, stored: StoredMap, generation: str
) -> Layout:
    return original(self, pcs, index, stored, generation) if stored.layout else ()


@mutant("operator", "puts what is scaled back from nothing into ScaleOut", "MAP-015")
@instead_of(fitting, "first_layout")
def _scaled_back_without_anchor(components: Iterable[Component], generation: str, epochs: Epochs) -> Layout:
    groups = {c.key.name: tuple(range(c.replicas)) for c in components if c.key.kind is Kind.GROUP and c.replicas}
    if not groups:
        return first_layout(components, generation, epochs)
    lost, key = epochs(2)
    return (Entry(key, generation, Role.SCALE_OUT, groups=groups, depends_on=(lost,)),)


@mutant("operator", "depends on an epoch that is gone after a scale from nothing", "MAP-016")
def _anchor_runs_no_clique() -> None:
    def with_a_lost_epoch(components: Iterable[Component], generation: str, epochs: Epochs) -> Layout:
        lost = epochs(1)
        return tuple(
            dataclasses.replace(entry, depends_on=(*lost, *entry.depends_on)) if entry.role is Role.TAIL else entry
            for entry in first_layout(components, generation, epochs)
        )

    replace(fitting, "first_layout", with_a_lost_epoch)
    _keep_dependencies()


def _keep_dependencies() -> None:
    """Keep dependencies on entries that do not exist."""

    def with_dependencies(entries: Iterable[Entry]) -> Layout:
        every = list(entries)
        dependencies = {entry.key: entry.depends_on for entry in every}
        return tuple(dataclasses.replace(entry, depends_on=dependencies[entry.key]) for entry in tidy_layout(every))

    replace(fitting, "tidy_layout", with_dependencies)


@mutant("operator", "has no gang for a group's first replica in ScaleOut", "MAP-017")
@around(Placement, "gang_of")
def _first_replica_has_no_gang(original: Original, self: Placement, group: str, index: int) -> str | None:
    gang = original(self, group, index)
    added = gang is not None and self.gangs[gang].entry.role is Role.SCALE_OUT
    return None if added and index == 0 else gang


@mutant("operator", "rebuilds a lost map with new epochs", "MAP-046", "MAP-066")
def _rebuilt_with_new_epochs() -> None:
    replace(control, "live_layout", lambda live, observed, entry_by_replica=None: ())


@mutant("operator", "rebuilds a lost map with the template's replicas first", "MAP-021")
def _rebuilt_from_the_template() -> None:
    original = adoption.adopted_layout

    def adopted(
        live: Layout, components: Sequence[Component], observed: Observed, generation: str, epochs: Epochs
    ) -> Layout:
        declared = [dataclasses.replace(component, replicas=min(component.replicas, 2)) for component in components]
        return original(live, declared, observed, generation, epochs)

    replace(control, "adopted_layout", adopted)


@mutant("operator", "forgets the gangs of further replicas when it rebuilds a map", "MAP-022")
def _rebuilt_by_index() -> None:
    original = adoption.live_layout

    def live_layout(
        live: Iterable[PodGang], observed: Observed, entry_by_replica: adoption.EntryByReplica | None = None
    ) -> Layout:
        layout = original(live, observed, entry_by_replica)
        return tuple(
            dataclasses.replace(entry, key=str(int(entry.key) + 1), role=Role.TAIL)
            if entry.role is Role.SCALE_OUT and entry.groups
            else entry
            for entry in layout
        )

    def stay(
        manifests: Mapping[str, Manifest], present: Mapping[str, PodClique], may_create: Callable[[Manifest], bool]
    ) -> members.CliqueDifference:
        result = difference(manifests, present, may_create)
        return members.CliqueDifference(
            [clique for clique in result.surplus if clique.metadata.name not in manifests], result.missing
        )

    difference = members.difference
    replace(control, "live_layout", live_layout)
    replace(members, "difference", stay)
    replace(Cache, "has_members", lambda cache, namespace, gang: False)


@mutant("operator", "does not see that two entries hold one replica", "MAP-024")
@around(fitting, "violations")
def _index_in_two_gangs(original: Original, layout: Layout, components: Sequence[Component]) -> list[str]:
    seen_indices: set[tuple[str, int]] = set()
    entries: list[Entry] = []
    for entry in layout:
        own_indices = {
            g: tuple(i for i in indices if (g, i) not in seen_indices) for g, indices in entry.groups.items()
        }
        seen_indices |= {(group, index) for group, indices in own_indices.items() for index in indices}
        entries.append(
            dataclasses.replace(entry, groups={group: indices for group, indices in own_indices.items() if indices})
        )
    return original(tuple(entries), components)


@mutant("operator", "does not repair dependencies on unknown epochs", "MAP-024")
def _unknown_dependencies_stay() -> None:
    _keep_dependencies()


@mutant("operator", "puts the replacements of lost pods into the Anchor", "MAP-030")
@around(CliqueReconciler, "_manifests")
def _replacements_in_the_anchor(
    original: Original, self: CliqueReconciler, place: CliqueContext, missing: list[tuple[int, str]]
) -> list[dict[str, Any]]:
    created = original(self, place, missing)
    if place.clique.status is not None and place.clique.status.ready_replicas:
        for pod in created:
            pod["metadata"]["labels"][labels.PODGANG] = next(iter(place.placement.gangs))
    return created


@mutant("operator", "replaces pods that have lost the label with their gang", "MAP-047")
@instead_of(CliqueReconciler, "_relabel")
async def _label_not_restored(self: CliqueReconciler, place: CliqueContext) -> None:
    return None


@mutant("operator", "leaves pods alone that have lost the label with their gang", "MAP-031")
def _unlabeled_pods_kept() -> None:
    original = CliqueReconciler._sync_pods

    async def balance(self: CliqueReconciler, place: CliqueContext) -> None:
        if all(pod.metadata.label(labels.PODGANG) for pod in self._cache.pods_of(place.clique)):
            await original(self, place)

    _label_not_restored()
    replace(CliqueReconciler, "_sync_pods", balance)


# -- updates -----------------------------------------------------------------------------------------------------------


@mutant("operator", "gives all entries new epochs in an update", "MAP-040", "MAP-041", "MAP-048")
def _updates_make_new_epochs() -> None:
    later = 10**9

    def current(layout: Layout, generation: str) -> Layout:
        if all(entry.generation == generation for entry in layout):
            return layout
        return tuple(
            dataclasses.replace(
                entry,
                key=str(int(entry.key) + later),
                generation=generation,
                depends_on=tuple(str(int(key) + later) for key in entry.depends_on),
            )
            for entry in layout
        )

    replace(MapWriter, "_with_generation", staticmethod(current))


@mutant("operator", "never changes the generation of an entry", "MAP-042", "MAP-045")
def _entries_keep_their_generation() -> None:
    replace(MapWriter, "_with_generation", staticmethod(lambda layout, generation: layout))


@mutant(
    "operator", "never changes the generation in the labels of a gang", "MAP-045", name="gangs-keep-their-generation"
)
@around(gangs, "drift")
def keep_generations_of_gangs(
    original: Original, pcs: Any, gang: Any, current: PodGang, tags: dict[str, str], *rest: Any
) -> dict[str, Any]:
    """Keep the generation hash that a gang's labels had at its creation."""
    generation = current.metadata.label(labels.GENERATION_HASH)
    return original(pcs, gang, current, {**tags, **({labels.GENERATION_HASH: generation} if generation else {})}, *rest)


@mutant("operator", "adds a ScaleOut that depends on nothing known in each update", "MAP-043")
def _second_scale_out() -> None:
    original = MapWriter.complete_layout

    def whole(self: MapWriter, pcs: PodCliqueSet, index: int, stored: StoredMap, generation: str) -> Layout:
        layout = original(self, pcs, index, stored, generation)
        old = any(entry.generation != generation for entry in layout)
        if not old or update_progress.set_progress(pcs) is None:
            return layout
        (key,) = self._epochs(pcs, index)(1)
        entries = [entry for entry in layout if entry.role is not Role.SCALE_OUT or not entry.is_empty]
        return (*entries, Entry(key, generation, Role.SCALE_OUT, depends_on=("",)))

    replace(MapWriter, "complete_layout", whole)
    _keep_dependencies()


@mutant("operator", "no longer follows replicas after OnDelete", "MAP-043")
@around(MapWriter, "complete_layout")
def _counts_stand_still_after_on_delete(
    original: Original, self: MapWriter, pcs: PodCliqueSet, index: int, stored: StoredMap, generation: str
) -> Layout:
    on_delete = pcs.spec.update_strategy is not None and str(pcs.spec.update_strategy.type) == "OnDelete"
    if on_delete and update_progress.set_progress(pcs) is not None:
        return stored.layout
    return original(self, pcs, index, stored, generation)
