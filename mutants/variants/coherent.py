"""Variants of coherent updates: what the proposal leaves open, or says in one of two ways."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.api.coherent import MapEntry, PodGangMap
from reference_impl.api.models import PodCliqueSet
from reference_impl.api.pods import Pod
from reference_impl.control.coherent import CoherentSets
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.plan import defaults
from reference_impl.plan.coherent import gangs, layout, maps, naming, planner, slots
from reference_impl.plan.coherent.layout import Entry, Key, Layout
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.coherent.observed import Observed
from reference_impl.plan.coherent.slots import Slot


@variant("hexadecimal-gang-names", "operator", "ends names of gangs in hexadecimal", "COHR-021", "COHR-030", "COHR-046")
def _hexadecimal_gang_names() -> None:
    def number(gang: str) -> int | None:
        tail = gang.rpartition("-")[2]
        return int(tail[1:], 16) if len(tail) == 17 and tail.startswith("g") else None

    right = naming.Names.take

    def take(self: naming.Names, prefix: str, count: int, existing: Iterable[str]) -> list[str]:
        found = right(self, prefix, count, existing)
        return [f"{prefix}-g{int(name.rpartition('-')[2]):016x}" for name in found]

    replace(naming, "number", number)
    replace(naming.Names, "take", take)


@variant("entries-reversed", "operator", "lists the newest gang first in maps", "COHR-030", "COHR-032", "COHR-046")
def _entries_reversed() -> None:
    to_entries, of_map = layout.to_entries, layout.of_map

    def reversed_entries(found: Layout) -> list[MapEntry]:
        return to_entries(found)[::-1]

    def oldest_first(found: PodGangMap) -> Layout:
        return tuple(sorted(of_map(found), key=lambda entry: naming.order(entry.name)))

    replace(layout, "to_entries", reversed_entries)
    replace(layout, "of_map", oldest_first)


@variant("odd-replicas-first", "operator", "replaces every second replica first", "COHR-030", "COHR-031", "COHR-047")
def _odd_replicas_first() -> None:
    right = slots.slots

    def mixed(found_layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        found = right(found_layout, key, observed, generation)
        lost, sound = [slot for slot in found if not slot.available], [slot for slot in found if slot.available]
        return [*lost, *sound[1::2], *sound[::2]]

    replace(planner, "slots", mixed)


@variant("gates-one-by-one", "operator", "opens gates one by one, the last pod first", "COHR-020", "COHR-030")
def _gates_one_by_one() -> None:
    right = CliqueReconciler._ungate_all

    async def ungate_all(self: CliqueReconciler, ready: Iterable[Pod]) -> None:
        for pod in sorted(ready, key=lambda pod: pod.metadata.name, reverse=True):
            await right(self, [pod])

    replace(CliqueReconciler, "_ungate_all", ungate_all)


@variant("further-map-labels", "operator", "writes further labels and annotations on maps", "COHR-010", "COHR-086")
def _further_map_labels() -> None:
    right = maps.manifest

    def manifest(pcs: PodCliqueSet, index: int, wanted: ReplicaMap) -> dict[str, Any]:
        found = right(pcs, index, wanted)
        found["metadata"]["labels"]["example.com/team"] = "blue"
        found["metadata"]["annotations"]["example.com/note"] = "kept"
        return found

    replace(maps, "manifest", manifest)


@variant("maps-written-twice", "operator", "writes each map twice", "COHR-030", "COHR-031", "COHR-034", "COHR-095")
def _maps_written_twice() -> None:
    right = CoherentSets._write

    async def write(self: CoherentSets, pcs: PodCliqueSet, index: int, held: ReplicaMap | None, found: Layout) -> None:
        await right(self, pcs, index, held, found)
        name = maps.manifest(pcs, index, maps.with_layout(held, found, self._maps.templates(pcs)))["metadata"]["name"]
        written = self._cache.maps.get(pcs.metadata.namespace, name)
        if written is not None and (held is None or held.layout != found):
            note = {"metadata": {"annotations": {"example.com/entries": f"{len(found)} of {found[-1].name}"}}}
            await self._writer.patch(self._cache.maps, written, note)

    replace(CoherentSets, "_write", write)


@variant("waits-for-all-anchors", "operator", "lets gangs wait for anchors of all generations", "COHR-020", "COHR-030")
def _waits_for_all_anchors() -> None:
    def dependencies(found: Layout, entry: Entry) -> list[str]:
        return [] if entry.anchor else [other.name for other in found if other.anchor]

    replace(gangs, "dependencies", dependencies)


@variant("budget-of-other-strategies-open", "operator", "defaults maxUnavailable of coherent sets only", "COHR-007")
def _budget_of_other_strategies_open() -> None:
    right = defaults._rolling_updates

    def rolling_updates(template: dict[str, Any], strategy: Any, *, created: bool) -> Any:
        return right(template, strategy, created=False)

    replace(defaults, "_rolling_updates", rolling_updates)
