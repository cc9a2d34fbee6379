"""Mutants of coherent sets between updates: scaling, adoption and repair."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.models import PodCliqueSet
from reference_impl.control import maps as control
from reference_impl.control.maps import MapWriter
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.control.writer import await_all
from reference_impl.plan import fitting, labels, lines
from reference_impl.plan.coherent import update
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.components import Component, Key, Kind
from reference_impl.plan.epochs import Epochs
from reference_impl.plan.layout import Entry, Layout, Role, anchors, first_layout, indices_of_group
from reference_impl.plan.maps import StoredMap
from reference_impl.plan.observed import Observed


@mutant("operator", "puts added replicas into a gang that exists", "COHR-080")
@around(fitting._LayoutFitter, "ensure_scale_out_entry")
def _added_replicas_share_a_gang(original: Original, self: fitting._LayoutFitter) -> str:
    key = original(self)
    return next((entry.key for entry in self.entries.values() if entry.anchor), key)


Keep = Callable[[dict[str, tuple[int, ...]], int], dict[str, tuple[int, ...]]]
"""A function that selects the replicas that stay. It takes a group's indices by entry and the number of replicas to
keep, and returns the kept indices by entry."""


def _lowest_removed(before: dict[str, tuple[int, ...]], count: int) -> dict[str, tuple[int, ...]]:
    every = sorted(index for indices in before.values() for index in indices)
    remaining = set(every[len(every) - count :])
    return {key: tuple(index for index in indices if index in remaining) for key, indices in before.items()}


def _oldest_removed(before: dict[str, tuple[int, ...]], count: int) -> dict[str, tuple[int, ...]]:
    remaining = {key: list(indices) for key, indices in before.items()}
    for key in sorted(remaining):
        while remaining[key] and sum(map(len, remaining.values())) > count:
            remaining[key].pop(0)
    return {key: tuple(indices) for key, indices in remaining.items()}


def _fitted_by(keep: Keep) -> Callable[..., Layout]:
    """Return a replacement for `fitted` that removes other replicas of scaling groups. `keep` selects the replicas that
    stay."""

    def fitted(
        layout: Layout,
        components: Sequence[Component],
        observed: Observed,
        generation: str,
        epochs: Epochs,
        live: Layout = (),
    ) -> Layout:
        result = original_fitted(layout, components, observed, generation, epochs, live)
        for component in components:
            before = indices_of_group(layout, component.key.name)
            if component.key.kind is Kind.GROUP and sum(map(len, before.values())) >= component.replicas > 0:
                kept_indices = keep(before, component.replicas)
                entries = {entry.key: entry for entry in (*layout, *result)}
                result = tuple(
                    entry.with_indices(component.key.name, kept_indices.get(entry.key, ()))
                    for entry in entries.values()
                )
        return result

    return fitted


original_fitted = fitting.fitted_layout
lowest_removed = _fitted_by(_lowest_removed)
"""A replacement for `fitted` that removes the replicas with the lowest indices."""
fitted_with_gaps = _fitted_by(_oldest_removed)
"""A replacement for `fitted` that removes the replicas of the oldest entries first."""


def fits_by_count(layout: Layout, components: Sequence[Component]) -> bool:
    """Return whether the layout holds the right number of members of each component, regardless of their indices."""
    return all(sum(entry.count(component.key) for entry in layout) == component.replicas for component in components)


@mutant("operator", "removes the replicas with the lowest indices", "COHR-082", "COHR-099")
def _first_replica_removed() -> None:
    replace(control, "fitted_layout", lowest_removed)
    replace(control, "fits", fits_by_count)


@mutant("operator", "removes the replicas of the oldest gangs first", "COHR-082")
def _scale_in_leaves_gaps() -> None:
    replace(control, "fitted_layout", fitted_with_gaps)
    replace(control, "fits", fits_by_count)


@mutant("operator", "lets added pods join the oldest gang", "COHR-081")
@instead_of(fitting._LayoutFitter, "_default_anchor")
def _added_pods_join_the_oldest(self: fitting._LayoutFitter, key: Key) -> str:
    return next(entry.key for entry in self.entries.values() if entry.anchor)


@mutant("operator", "marks the gangs of added replicas as anchors", "COHR-080")
@around(lines, "_labels_by_epoch")
def _added_replicas_are_anchors(original: Original, entry: Entry) -> dict[str, str]:
    return original(dataclasses.replace(entry, role=Role.ANCHOR) if entry.role is Role.SCALE_OUT else entry)


@mutant("operator", "removes the pods of the oldest gangs first", "COHR-083")
def _oldest_gang_shrinks_first() -> None:
    replace(fitting._LayoutFitter, "_entries_newest_first", lambda self: list(self.entries.values()))


@mutant("operator", "recreates the pods of a gang that loses a replica", "COHR-085")
@around(CliqueReconciler, "_sync_pods", memory=dict)
async def _shrunk_gangs_restart(
    original: Original, sizes: dict[str, int], self: CliqueReconciler, place: CliqueContext
) -> None:
    gangs = place.placement.gangs.items()
    now = {name: sum(map(len, gang.groups.values())) for name, gang in gangs if gang.entry.anchor}
    shrunk_gangs = {name for name, size in now.items() if size < sizes.get(name, 0)}
    sizes.update(now)
    if not update.is_running(place.pcs):
        lost = [pod for pod in self._cache.pods_of(place.clique) if pod.metadata.label(labels.PODGANG) in shrunk_gangs]
        await await_all(self._writer.delete(self._cache.pods, pod) for pod in lost)
    await original(self, place)


@mutant("operator", "terminates a replica into one gang that holds everything", "COHR-089")
@around(MapWriter, "prepare_termination")
async def _termination_starts_over(original: Original, self: MapWriter, pcs: PodCliqueSet, index: int) -> None:
    if (stored := self._layouts.stored(pcs, index)) is not None:
        generation = self._layouts.templates(pcs).generation
        await_all = [
            dataclasses.replace(component, min_available=component.replicas)
            for component in self._layouts.components(pcs, index)
        ]
        await self._write(pcs, index, stored, first_layout(await_all, generation, self._epochs(pcs, index)))
    await original(self, pcs, index)


@mutant("operator", "follows a PodGangMap as somebody has edited it", "COHR-095")
@instead_of(MapWriter, "complete_layout")
def _edited_maps_decide(self: MapWriter, pcs: PodCliqueSet, index: int, stored: StoredMap, generation: str) -> Layout:
    return stored.layout


@mutant("operator", "lets added pods join the newest anchor", "COHR-108")
@instead_of(fitting._LayoutFitter, "_default_anchor")
def _added_pods_join_the_newest_anchor(self: fitting._LayoutFitter, key: Key) -> str:
    return anchors(tuple(self.entries.values()))[-1].key


@mutant("operator", "does not restore a PodGangMap that is deleted", "COHR-076", "COHR-094", "MAP-020")
def _lost_maps_stay_lost() -> None:
    original = MapWriter._renew_replica

    async def restore(self: MapWriter, pcs: PodCliqueSet) -> None:
        return None

    async def replica(self: MapWriter, pcs: PodCliqueSet, index: int) -> Step | None:
        lost = self._layouts.stored(pcs, index) is None and self._layouts.gangs(pcs, index)
        return None if lost else await original(self, pcs, index)

    replace(MapWriter, "restore", restore)
    replace(MapWriter, "_renew_replica", replica)


@mutant("operator", "gives a replica whose map is lost new gangs", "COHR-076", "COHR-094")
@instead_of(control, "adopted_layout")
def _adoption_starts_over(
    live: Layout, components: Sequence[Component], observed: Observed, generation: str, epochs: Epochs
) -> Layout:
    return first_layout(components, generation, epochs)
