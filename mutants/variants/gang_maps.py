"""Variants of PodGangMaps: what the contract leaves open, or releases do in one of two ways."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import msgspec

from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.api.coherent import MapEntry
from reference_impl.api.models import PodCliqueSet
from reference_impl.control.gang_migration import GangMigration
from reference_impl.control.maps import MapWriter
from reference_impl.control.podclique import CliqueReconciler, Place
from reference_impl.plan import gang_migration, gangs, labels, lines, maps, update_progress
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.epochs import EpochSource
from reference_impl.plan.gangs import PlannedGang
from reference_impl.plan.layout import Entry, Role

LOOKS = "example.com/looks"


@variant("maps-written-often", "operator", "writes maps in each pass", "MAP-020", profiles=("gang-maps",))
def _maps_written_often() -> None:
    right, looks = MapWriter.renew, itertools.count()

    async def renew(self: MapWriter, pcs: PodCliqueSet) -> Step | None:
        found = await right(self, pcs)
        for held in self._cache.maps.indexed("owner", pcs.metadata.uid):
            body = {"metadata": {"annotations": {LOOKS: str(next(looks))}}}
            await self._writer.patch(self._cache.maps, held, body)
        return found

    replace(MapWriter, "renew", renew)


@variant("epochs-far-apart", "operator", "leaves a second between epochs", "MAP-002", profiles=("gang-maps",))
def _epochs_far_apart() -> None:
    right, apart = EpochSource.take, 10**9

    def take(self: EpochSource, count: int, existing: Iterable[str]) -> list[str]:
        found = right(self, 1, existing) if count else []
        self._last += apart * count
        return [str(int(found[0]) + apart * number) for number in range(count)]

    replace(EpochSource, "take", take)


@variant(
    "empty-members-listed",
    "operator",
    "lists what an entry has lost with no members",
    "MAP-012",
    profiles=("gang-maps",),
)
def _empty_members_listed() -> None:
    right = maps._stored

    def stored(entry: Entry) -> MapEntry:
        found = right(entry)
        if entry.role is Role.SCALE_OUT and not entry.groups:
            return msgspec.structs.replace(found, pcsg_replica_indices={"g": []})
        return found

    replace(maps, "_stored", stored)


@variant(
    "standalone-cliques-marked",
    "operator",
    "lets standalone cliques name a gang, too",
    "MAP-004",
    profiles=("gang-maps",),
)
def _standalone_cliques_marked() -> None:
    replace(lines, "_standalone_by_epoch", lambda replica: {labels.PODGANG: replica})


@variant(
    "gang-labels-move-first",
    "operator",
    "labels gangs with the present generation of the set",
    "MAP-042",
    profiles=("gang-maps",),
)
def _gang_labels_move_first() -> None:
    right = gangs._planned

    def planned(pcs: PodCliqueSet, *rest: Any, **named: Any) -> PlannedGang:
        found = right(pcs, *rest, **named)
        generation = update_progress.generation(pcs)
        return dataclasses.replace(found, labels={**found.labels, labels.GENERATION_HASH: generation})

    replace(gangs, "_planned", planned)


@variant(
    "label-restored-late", "operator", "gives pods their label back after a second", "MAP-031", profiles=("gang-maps",)
)
def _label_restored_late() -> None:
    right = CliqueReconciler._relabel

    async def relabel(self: CliqueReconciler, place: Place) -> None:
        astray = [pod for pod in self._cache.pods_of(place.clique) if not pod.metadata.label(labels.PODGANG)]
        if astray:
            await asyncio.sleep(1)
        await right(self, place)

    replace(CliqueReconciler, "_relabel", relabel)


@variant(
    "earlier-gangs-go-first",
    "operator",
    "deletes earlier gangs before it creates new ones",
    "UPG-012",
    "UPG-013",
    "UPG-014",
    "UPG-015",
)
def _earlier_gangs_go_first() -> None:
    right = GangMigration.assign

    async def assign(self: GangMigration, pcs: PodCliqueSet) -> None:
        await right(self, pcs)
        for gang in self._gangs(pcs) if gang_migration.running(pcs) else ():
            if self._layouts.line.stored and not gang.metadata.label(labels.EPOCH):
                await self._writer.delete(self._cache.gangs, gang)

    replace(GangMigration, "assign", assign)


@variant(
    "migrated-one-by-one",
    "operator",
    "assigns pods one after the other, the last one first",
    "UPG-012",
    "UPG-013",
    "UPG-014",
    "UPG-015",
)
def _migrated_one_by_one() -> None:
    async def assign(self: GangMigration, pcs: PodCliqueSet) -> None:
        for index in reversed(range(pcs.spec.replicas)):
            for write in list(self._of_replica(pcs, index))[::-1]:
                await write()

    replace(GangMigration, "assign", assign)
