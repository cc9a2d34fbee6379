"""Variants that write PodGangMaps differently, where the contract leaves a choice or where releases of Grove differ."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from kube.objects import ObjectMeta, OwnerReference
from mutants.profiles.gang_maps import keep_generations_of_gangs
from mutants.registry import variant
from mutants.replacement import Original, alter, around, instead_of, on_result_of, replace
from reference_impl.api.coherent import MapEntry, PodGangMap
from reference_impl.api.models import PODGANGMAPS, PodCliqueSet
from reference_impl.control import maps as control
from reference_impl.control.gang_migration import GangMigration
from reference_impl.control.maps import MapWriter
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.plan import (
    children,
    desired,
    fitting,
    gang_migration,
    gangs,
    labels,
    lines,
    maps,
    names,
    update_progress,
)
from reference_impl.plan.coherent import update
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.epochs import EpochSource
from reference_impl.plan.gangs import PlannedGang
from reference_impl.plan.layout import Entry, EntryGang, Layout, Role
from reference_impl.plan.maps import StoredMap

WRITES_ANNOTATION = "example.com/looks"


@variant("operator", "writes maps in each pass", "MAP-020", profiles=("gang-maps",))
@around(MapWriter, "renew", memory=itertools.count)
async def _maps_written_often(
    original: Original, passes: Iterator[int], self: MapWriter, pcs: PodCliqueSet
) -> Step | None:
    step = await original(self, pcs)
    for gang_map in self._cache.maps.indexed("owner", pcs.metadata.uid):
        body = {"metadata": {"annotations": {WRITES_ANNOTATION: str(next(passes))}}}
        await self._writer.patch(self._cache.maps, gang_map, body)
    return step


@variant(
    "operator",
    "names standalone PodCliques in maps as their objects are named, not as the template does",
    "MAP-007",
    "COHR-011",
    "COHR-032",
    "COHR-080",
)
def _cliques_by_their_own_names() -> None:
    manifest, read = maps.manifest, maps.read

    def with_own_names(pcs: PodCliqueSet, index: int, content: StoredMap) -> dict[str, Any]:
        body = manifest(pcs, index, content)
        for entry in body["spec"]["entries"]:
            if cliques := entry.get("podCliques"):
                entry["podCliques"] = {names.clique(pcs.metadata.name, index, key): n for key, n in cliques.items()}
        return body

    def with_template_names(stored: PodGangMap) -> StoredMap:
        prefix = f"{stored.metadata.name}-"
        entries = [
            msgspec.structs.replace(
                entry, pod_cliques=cliques and {k.removeprefix(prefix): n for k, n in cliques.items()}
            )
            for entry in stored.spec.entries
            for cliques in [entry.pod_cliques]
        ]
        return read(msgspec.structs.replace(stored, spec=msgspec.structs.replace(stored.spec, entries=entries)))

    replace(maps, "manifest", with_own_names)
    replace(maps, "read", with_template_names)


@variant("operator", "leaves a second between epochs", "MAP-002", profiles=("gang-maps",))
def _epochs_far_apart() -> None:
    original, step = EpochSource.take, 10**9

    def take(self: EpochSource, count: int, existing: Iterable[str]) -> list[str]:
        first = original(self, 1, existing) if count else []
        self._last += step * count
        return [str(int(first[0]) + step * number) for number in range(count)]

    replace(EpochSource, "take", take)


@variant(
    "operator",
    "names all gangs after replica and a number, as GREP-393 has it",
    "MAP-003",
    "MAP-004",
    "MAP-005",
    profiles=("gang-maps",),
    exempt=("MAP-021", "MAP-065"),
)
def _gangs_named_by_numbers() -> None:
    def name_by_number(default_name: str, replica: str, entries: Layout, gang: EntryGang) -> str:
        number = f"{gang.entry.key}{zlib.crc32(f'{gang.group}-{gang.index}'.encode()):010}"
        too_long = len(f"{replica}-{number}") > lines.LABEL_LIMIT
        return default_name if gang.entry.anchor or too_long else f"{replica}-{number}"

    def epoch_in_number(epoch: str, replica: str, gang: str) -> str:
        number = gang.removeprefix(f"{replica}-")
        return number[: lines.EPOCH_DIGITS] if number.isdigit() else epoch

    alter(lines, "_name_by_epoch", name_by_number)
    alter(lines, "epoch_of", epoch_in_number)


@variant(
    "operator",
    "makes a lost map from the template, with other gangs",
    "MAP-020",
    exempt=("INV-009", "MAP-046", "MAP-066"),
    conflict="the others need the gangs that it replaces",
)
def _maps_made_anew() -> None:
    alter(control, "live_layout", lambda layout, live, observed, entry_by_replica=None: ())


@variant("operator", "lists what an entry has lost with no members", "MAP-012", profiles=("gang-maps",))
@around(maps, "_map_entry")
def _empty_members_listed(original: Original, entry: Entry) -> MapEntry:
    result = original(entry)
    if entry.role is Role.SCALE_OUT and not entry.groups:
        return msgspec.structs.replace(result, pcsg_replica_indices={"g": []})
    return result


@variant("operator", "labels gangs with the present generation of the set", "MAP-042", profiles=("gang-maps",))
@around(gangs, "_planned_gang")
def _gang_labels_move_first(original: Original, pcs: PodCliqueSet, *rest: Any, **named: Any) -> PlannedGang:
    result = original(pcs, *rest, **named)
    generation = update_progress.generation(pcs)
    return dataclasses.replace(result, labels={**result.labels, labels.GENERATION_HASH: generation})


@variant("operator", "gives pods their label back after a second", "MAP-031", profiles=("gang-maps",))
@around(CliqueReconciler, "_relabel")
async def _label_restored_late(original: Original, self: CliqueReconciler, place: CliqueContext) -> None:
    unlabeled_pods = [pod for pod in self._cache.pods_of(place.clique) if not pod.metadata.label(labels.PODGANG)]
    if unlabeled_pods:
        await asyncio.sleep(1)
    await original(self, place)


@variant(
    "operator",
    "assigns pods one after the other, the last one first",
    *("UPG-012", "UPG-013", "UPG-014", "UPG-015", "UPG-021", "UPG-022"),
)
@instead_of(GangMigration, "assign")
async def _migrated_one_by_one(self: GangMigration, pcs: PodCliqueSet) -> None:
    for index in reversed(range(pcs.spec.replicas)):
        for write in list(self._replica_writes(pcs, index))[::-1]:
            await write()


@variant(
    "operator",
    "deletes earlier gangs before it creates new ones",
    *("UPG-012", "UPG-013", "UPG-014", "UPG-015", "UPG-021", "UPG-022"),
)
@around(GangMigration, "assign")
async def _earlier_gangs_go_first(original: Original, self: GangMigration, pcs: PodCliqueSet) -> None:
    await original(self, pcs)
    for gang in self._gangs(pcs) if gang_migration.is_running(pcs) else ():
        if self._layouts.line.stores_layouts and not gang.metadata.label(labels.EPOCH):
            await self._writer.delete(self._cache.gangs, gang)


@variant("operator", "removes a ScaleOut entry that holds nothing", "MAP-002", "MAP-011", "MAP-012", "MAP-013")
@on_result_of(fitting, "tidy_layout")
def _no_place_for_scale_out(entries: Layout, *_: Any) -> Layout:
    return tuple(entry for entry in entries if not entry.is_empty)


@variant(
    "operator", "puts replicas that scaling brings back into a Tail if the template declares them", "MAP-007", "MAP-011"
)
@on_result_of(MapWriter, "complete_layout")
def _declared_replicas_return_to_the_tail(
    layout: Layout, self: MapWriter, pcs: PodCliqueSet, index: int, stored: StoredMap, generation: str
) -> Layout:
    returning_indices = {
        config.name: tuple(range(config.min_available, config.replicas)) for config in children.group_configs(pcs)
    }
    scaled_out = [
        (entry, g, i)
        for entry in layout
        if entry.role is Role.SCALE_OUT
        for g, indices in entry.groups.items()
        for i in indices
    ]
    running = self._layouts.observed(pcs, index).replicas
    moved_replicas = [
        (g, i) for _, g, i in scaled_out if i in returning_indices.get(g, ()) and i not in running.get(g, {})
    ]
    anchor = next((entry for entry in layout if entry.anchor), None)
    if update.is_coherent(pcs) or not moved_replicas or anchor is None:
        return layout
    (key,) = self._epochs(pcs, index)(1)
    tail = Entry(key, generation, Role.TAIL, depends_on=(anchor.key,))
    for group, _ in moved_replicas:
        tail = tail.with_indices(group, (i for g, i in moved_replicas if g == group))
    rest = [_without_replicas(entry, moved_replicas) if entry.role is Role.SCALE_OUT else entry for entry in layout]
    return (*rest, tail)


def _without_replicas(entry: Entry, moved: list[tuple[str, int]]) -> Entry:
    """Return the entry without the replicas of scaling groups in `moved`."""
    for group, indices in list(entry.groups.items()):
        entry = entry.with_indices(group, (index for index in indices if (group, index) not in moved))
    return entry


@variant("operator", "replaces pods that have lost the label with their gang", "MAP-031", exempt=("MAP-047",))
@around(CliqueReconciler, "_relabel")
async def _unlabeled_pods_replaced(original: Original, self: CliqueReconciler, place: CliqueContext) -> None:
    for pod in self._cache.pods_of(place.clique) if len(place.shares) == 1 else ():
        if pod.active and not pod.metadata.label(labels.PODGANG):
            await self._writer.delete(self._cache.pods, pod)
    await original(self, place)


@variant(
    "operator",
    "keeps the generation for which a gang was made in its labels, as the label's comment has it",
    "MAP-005",
    "MAP-042",
    exempt=("MAP-045",),
)
def _gangs_labelled_as_created() -> None:
    keep_generations_of_gangs()


@variant(
    "operator",
    "makes a PodGangMap the controller of its PodGangs, and the set a further owner",
    *("GANG-001", "INV-004", "MAP-001", "MAP-020", "MAP-043"),
    exempt=("CORE-045", "LIFE-013", "LIFE-014", "LIFE-015"),
)
def _gangs_controlled_by_their_maps() -> None:
    original, original_controller = SetReconciler._child_writes, vars(ObjectMeta)["controller"].fget

    def difference(self: SetReconciler, pcs: PodCliqueSet, index: int, child: Any, *rest: Any) -> Iterator[Any]:
        writes: Iterator[Any] = original(self, pcs, index, child, *rest)
        for write in writes:
            name = names.gang_map(pcs.metadata.name, index)
            owner = self._cache.maps.get(pcs.metadata.namespace, name)
            if not isinstance(child, desired.DesiredGang) or write.func != self._writer.create or owner is None:
                yield write
                continue
            informer, manifest = write.args
            metadata = manifest["metadata"]
            reference = children.owner_reference(PODGANGMAPS.api_version, PODGANGMAPS.kind, owner.metadata)
            owners = [reference, *({**entry, "controller": False} for entry in metadata["ownerReferences"])]
            yield partial(write.func, informer, {**manifest, "metadata": {**metadata, "ownerReferences": owners}})

    def controller(self: ObjectMeta) -> OwnerReference | None:
        current: OwnerReference | None = original_controller(self)
        if current is None or current.kind != PODGANGMAPS.kind:
            return current
        return next((owner for owner in self.owner_references or () if owner.kind == "PodCliqueSet"), current)

    replace(SetReconciler, "_child_writes", difference)
    replace(ObjectMeta, "controller", property(controller))
