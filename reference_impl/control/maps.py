"""The PodGangMaps of a set. They are written for new replicas, after scaling, during a coherent update, and after a
manual change or the deletion of a map (spec GM-34 to GM-47, COH-100 to COH-273).

Only the reconciler of the set writes maps. Gangs, cliques of scaling groups and pods follow the maps. A map is the only
memory of an update. Each reconcile derives the next step from the map, so an operator that takes over after any write
continues the update.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reference_impl.api.models import GangLayout, PodCliqueSet
from reference_impl.control.cache import Cache
from reference_impl.control.layouts import Layouts
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import labels, maps, names, ownership, reconcile_error, revisions, update_progress
from reference_impl.plan.adoption import adopted_layout, live_layout, named_members
from reference_impl.plan.coherent import planner, update, versions
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.components import Component, Key
from reference_impl.plan.epochs import Epochs, EpochSource
from reference_impl.plan.fitting import fits, fitted_layout
from reference_impl.plan.layout import Layout, first_layout
from reference_impl.plan.maps import StoredMap


class MapWriter:
    """Writes the PodGangMaps of sets, if layouts are stored."""

    def __init__(self, cache: Cache, writer: Writer, layouts: Layouts, epochs: EpochSource) -> None:
        self._cache, self._writer, self._layouts, self._epoch_source = cache, writer, layouts, epochs

    async def restore(self, pcs: PodCliqueSet) -> None:
        """Write the maps of replicas that have gangs but no map. Nothing else changes (GM-44)."""
        for index in self._mapped_replicas(pcs):
            if self._layouts.stored(pcs, index) is None and self._layouts.gangs(pcs, index):
                observed, components = self._layouts.observed(pcs, index), self._layouts.components(pcs, index)
                gangs = self._layouts.gangs(pcs, index)
                live = live_layout(gangs, observed, named_members(pcs, index, gangs))
                generation = update_progress.generation(pcs)
                layout = adopted_layout(live, components, observed, generation, self._epochs(pcs, index))
                await self._write(pcs, index, None, layout)

    async def renew(self, pcs: PodCliqueSet) -> Step | None:
        """Update the maps of all replicas. Return the step of a coherent update in the replica whose turn it is."""
        if not revisions.set_revision(pcs, self._layouts.policy).has(update_progress.generation(pcs)):
            return None  # the set has changed during this reconcile
        replicas, turn = self._mapped_replicas(pcs), update_progress.current_replica(pcs)
        steps = await await_all(self._renew_replica(pcs, index) for index in replicas)
        return next((step for index, step in zip(replicas, steps, strict=True) if index == turn), None)

    def _mapped_replicas(self, pcs: PodCliqueSet) -> range:
        """Return the replicas that have maps, which are all replicas, or no replicas on a release line without maps."""
        return range(pcs.spec.replicas if self._layouts.line.stores_layouts else 0)

    async def _renew_replica(self, pcs: PodCliqueSet, index: int) -> Step | None:
        stored, components = self._layouts.stored(pcs, index), self._layouts.components(pcs, index)
        generation, epochs = update_progress.generation(pcs), self._epochs(pcs, index)
        if stored is None:
            await self._write(pcs, index, None, first_layout(components, generation, epochs))
            return None
        step: Step | None = None
        layout = self.complete_layout(pcs, index, stored, generation)
        if not update.is_running(pcs):
            layout = self._with_generation(layout, generation)
        elif self._has_turn(pcs, index):
            scope, observed = self._components_in_scope(pcs, components), self._layouts.observed(pcs, index)
            step = planner.next_step(layout, scope, observed, generation, gang_layout(pcs), epochs)
            layout = step.layout if isinstance(step, planner.Advance) else layout
            layout = planner.converged_layout(layout, scope, generation, complete=isinstance(step, planner.Complete))
        await self._write(pcs, index, stored, layout)
        return step

    @staticmethod
    def _with_generation(layout: Layout, generation: str) -> Layout:
        """Return the layout of a set that is not being updated coherently, in which all entries have the current
        generation (GM-71)."""
        return tuple(replace(entry, generation=generation) for entry in layout)

    @staticmethod
    def _has_turn(pcs: PodCliqueSet, index: int) -> bool:
        """Return whether an update may change the gangs of a replica now."""
        return index == update_progress.current_replica(pcs)

    def complete_layout(self, pcs: PodCliqueSet, index: int, stored: StoredMap, generation: str) -> Layout:
        """Return the layout of a replica with each member in exactly one gang."""
        components, gangs = self._layouts.components(pcs, index), self._layouts.gangs(pcs, index)
        placement = self._layouts.placement_at(pcs, index)
        has_unknown_gangs = placement is None or any(gang.metadata.name not in placement.gangs for gang in gangs)
        if not has_unknown_gangs and fits(stored.layout, components):
            return stored.layout
        observed = self._layouts.observed(pcs, index)
        live = live_layout(gangs, observed)
        return fitted_layout(stored.layout, components, observed, generation, self._epochs(pcs, index), live)

    def _components_in_scope(self, pcs: PodCliqueSet, components: Iterable[Component]) -> list[Component]:
        scope: set[Key] = update.scope_of(update_progress.set_progress(pcs))
        return [component for component in components if component.key in scope]

    async def prepare_termination(self, pcs: PodCliqueSet, index: int) -> None:
        """Prepare a replica of a set with the strategy Coherent for its termination. The replica's gangs are recreated
        from the map, so that they start again in the order of their dependencies. In the middle of an update, the map
        is replaced by the first layout of the new version, because gangs of an old version could not be filled from the
        current template (COH-262)."""
        stored, current = self._layouts.stored(pcs, index), self._layouts.templates(pcs)
        if stored is None or not update.is_coherent(pcs):
            return
        if update.is_running(pcs) and versions.outdated_components(pcs, stored, current):
            components = self._layouts.components(pcs, index)
            await self._write(
                pcs, index, stored, first_layout(components, current.generation, self._epochs(pcs, index))
            )
        await await_all(self._writer.delete(self._cache.gangs, gang) for gang in self._layouts.gangs(pcs, index))

    def _epochs(self, pcs: PodCliqueSet, index: int) -> Epochs:
        """Return the source of epochs for new entries of a replica."""
        existing = [epoch for gang in self._layouts.gangs(pcs, index) if (epoch := gang.metadata.label(labels.EPOCH))]
        stored = self._layouts.stored(pcs, index)
        existing += [entry.key for entry in stored.layout] if stored is not None else []
        return lambda count: self._epoch_source.take(count, existing)

    async def _write(self, pcs: PodCliqueSet, index: int, stored: StoredMap | None, layout: Layout) -> None:
        """Write a map if it differs from the existing one."""
        current = self._layouts.templates(pcs)
        manifest = maps.manifest(pcs, index, versions.with_layout(stored, layout, current))
        existing = self._cache.maps.get(pcs.metadata.namespace, names.gang_map(pcs.metadata.name, index))
        if existing is None:
            await self._writer.create(self._cache.maps, manifest)
        elif not ownership.has_expected_controller(manifest, existing):
            raise reconcile_error.conflict("PodGangMap", pcs.metadata.namespace, existing.metadata.name)
        elif body := maps.correction(manifest, existing):
            await self._writer.patch(self._cache.maps, existing, body, guard=True)


def gang_layout(pcs: PodCliqueSet) -> GangLayout:
    """Return how a coherent update of the set forms gangs (COH-R01)."""
    options = pcs.spec.update_strategy.coherent if pcs.spec.update_strategy else None
    if options is not None and options.gang_layout is not None:
        return options.gang_layout
    annotation = (pcs.metadata.annotations or {}).get(labels.GANG_LAYOUT)
    return GangLayout.SINGLE_ANCHOR if annotation == GangLayout.SINGLE_ANCHOR else GangLayout.PER_STEP
