"""Mutants of the migration of running pods to the gangs of PodGangMaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from mutants.registry import mutant
from mutants.replacement import Original, around, replace
from reference_impl.api.models import PodClique, PodCliqueSet
from reference_impl.api.pods import Pod
from reference_impl.control import gang_migration as control
from reference_impl.control.gang_migration import GangMigration
from reference_impl.control.maps import MapWriter
from reference_impl.plan import fitting, gang_migration, labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.desired import DesiredSet, T
from reference_impl.plan.lines import Line, Placement


@mutant("operator", "deletes running pods instead of assigning them", "UPG-013")
@around(GangMigration, "_replica_writes")
def _migration_recreates_pods(
    original: Original, self: GangMigration, pcs: PodCliqueSet, index: int
) -> Iterator[control.Write]:
    for write in original(self, pcs, index):
        informer, item = write.args[:2]
        yield partial(self._writer.delete, informer, item) if informer.resource.kind == "Pod" else write


def _changed(change: Any) -> None:
    original = gang_migration.pod_change

    def pod_change(line: Line, pcs: PodCliqueSet, clique: PodClique, pod: Pod, placement: Placement) -> Manifest:
        body = original(line, pcs, clique, pod, placement)
        if body:
            change(pod, body["metadata"]["labels"])
        return body

    replace(gang_migration, "pod_change", pod_change)


@mutant("operator", "removes foreign labels from the pods that it assigns", "UPG-019")
def _migration_drops_labels() -> None:
    def drop(pod: Pod, tags: dict[str, str | None]) -> None:
        grove_prefixes = (labels.OWNED_PREFIX, "app.kubernetes.io/")
        tags.update({key: None for key in pod.metadata.labels or {} if not key.startswith(grove_prefixes)})

    _changed(drop)


@mutant("operator", "leaves the label of the base gang on migrated pods", "UPG-018")
def _migration_keeps_the_base_gang() -> None:
    _changed(lambda pod, tags: tags.pop(labels.BASE_PODGANG, None))


@mutant("operator", "does not see that a migration is complete", "UPG-022")
def _migration_never_ends() -> None:
    replace(GangMigration, "is_complete", lambda self, pcs: False)


@mutant("operator", "assigns pods without a condition", "UPG-015")
def _migration_unannounced() -> None:
    async def start(self: GangMigration, pcs: PodCliqueSet) -> PodCliqueSet:
        return pcs

    async def assign(self: GangMigration, pcs: PodCliqueSet) -> None:
        for index in range(pcs.spec.replicas):
            for write in self._replica_writes(pcs, index):
                await write()

    replace(GangMigration, "start", start)
    replace(GangMigration, "assign", assign)


@mutant("operator", "keeps the gangs of an earlier version", "UPG-012")
@around(DesiredSet, "surplus")
def _earlier_gangs_stay(original: Original, self: DesiredSet, kind: str, present: Iterable[T]) -> Iterator[T]:
    for item in original(self, kind, present):
        if kind != "PodGang" or item.metadata.label(labels.EPOCH):
            yield item


@mutant("operator", "writes a map of the first replica of each set alone", "UPG-021")
def _first_replicas_mapped() -> None:
    original = MapWriter._mapped_replicas
    replace(MapWriter, "_mapped_replicas", lambda self, pcs: original(self, pcs)[:1])


@mutant("operator", "writes no maps of sets that had no replica at first", "UPG-014")
@around(MapWriter, "_mapped_replicas", memory=dict)
def _emptied_replicas_forgotten(original: Original, first: dict[str, int], self: MapWriter, pcs: PodCliqueSet) -> range:
    return original(self, pcs) if first.setdefault(pcs.metadata.uid, pcs.spec.replicas) else range(0)


@mutant("operator", "begins no gangs for cliques that were scaled to nothing", "UPG-020")
def _emptied_sets_forgotten() -> None:
    replace(fitting, "first_layout", lambda components, generation, epochs: ())
