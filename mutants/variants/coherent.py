"""Variants of coherent updates: what the proposal leaves open, or says in one of two ways."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.api.models import PodCliqueSet
from reference_impl.api.pods import Pod
from reference_impl.control.maps import MapWriter
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.plan import defaults, maps
from reference_impl.plan.coherent import planner, slots, versions
from reference_impl.plan.coherent.slots import Slot
from reference_impl.plan.components import Key
from reference_impl.plan.layout import Layout
from reference_impl.plan.lines import Placement
from reference_impl.plan.maps import Stored
from reference_impl.plan.observed import Observed


@variant(
    "entries-reversed",
    "operator",
    "lists the newest gang first in maps",
    "COHR-030",
    "COHR-032",
    "COHR-046",
    "MAP-002",
    "MAP-020",
)
def _entries_reversed() -> None:
    right = maps.manifest

    def manifest(pcs: PodCliqueSet, index: int, wanted: Stored) -> dict[str, Any]:
        found = right(pcs, index, wanted)
        return {**found, "spec": {**found["spec"], "entries": found["spec"]["entries"][::-1]}}

    replace(maps, "manifest", manifest)


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


@variant(
    "further-map-labels",
    "operator",
    "writes further labels and annotations on maps",
    "COHR-010",
    "COHR-086",
    "MAP-001",
    "MAP-020",
)
def _further_map_labels() -> None:
    right = maps.manifest

    def manifest(pcs: PodCliqueSet, index: int, wanted: Stored) -> dict[str, Any]:
        found = right(pcs, index, wanted)
        found["metadata"]["labels"]["example.com/team"] = "blue"
        found["metadata"]["annotations"]["example.com/note"] = "kept"
        return found

    replace(maps, "manifest", manifest)


@variant("maps-written-twice", "operator", "writes each map twice", "COHR-030", "COHR-031", "COHR-034", "COHR-095")
def _maps_written_twice() -> None:
    right = MapWriter._write

    async def write(self: MapWriter, pcs: PodCliqueSet, index: int, stored: Stored | None, layout: Layout) -> None:
        await right(self, pcs, index, stored, layout)
        wanted = versions.with_layout(stored, layout, self._layouts.templates(pcs))
        name = maps.manifest(pcs, index, wanted)["metadata"]["name"]
        written = self._cache.maps.get(pcs.metadata.namespace, name)
        if written is not None and (stored is None or stored.layout != layout):
            note = {"metadata": {"annotations": {"example.com/entries": f"{len(layout)} entries, twice"}}}
            await self._writer.patch(self._cache.maps, written, note)

    replace(MapWriter, "_write", write)


@variant("waits-for-all-anchors", "operator", "lets gangs wait for anchors of all generations", "COHR-020", "COHR-030")
def _waits_for_all_anchors() -> None:
    def awaited(self: Placement, gang: str) -> list[str]:
        if self.gangs[gang].entry.anchor:
            return []
        return [name for name, other in self.gangs.items() if other.entry.anchor]

    replace(Placement, "awaited", awaited)


@variant("budget-of-other-strategies-open", "operator", "defaults maxUnavailable of coherent sets only", "COHR-007")
def _budget_of_other_strategies_open() -> None:
    right = defaults._rolling_updates

    def rolling_updates(template: dict[str, Any], strategy: Any, *, created: bool) -> Any:
        return right(template, strategy, created=False)

    replace(defaults, "_rolling_updates", rolling_updates)
