"""The PodGangMaps of a set: bootstrap, adoption, coherent updates, scaling between updates (COH-100 to COH-273).

Only the reconciler of the set writes maps. Everything else follows them: gangs, cliques of scaling groups, pods. The
map is the only memory of an update: what comes next is derived from it in each pass, so an operator that was killed
after any write continues.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reference_impl.api.models import GangLayout, PodCliqueSet, SetUpdateProgress
from reference_impl.control.cache import Cache
from reference_impl.control.gang_maps import GangMaps
from reference_impl.control.live_gangs import Live
from reference_impl.control.writer import Writer, together
from reference_impl.plan import (
    children,
    drift,
    labels,
    names,
    reconcile_error,
    revisions,
    update_progress,
    update_set_replicas,
)
from reference_impl.plan.coherent import gangs as map_gangs
from reference_impl.plan.coherent import maps, planner, update
from reference_impl.plan.coherent import scope as scopes
from reference_impl.plan.coherent.adoption import adopted
from reference_impl.plan.coherent.bootstrap import bootstrap
from reference_impl.plan.coherent.components import Component
from reference_impl.plan.coherent.layout import Entry, Key, Layout
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.coherent.naming import NameSource
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.coherent.repair import is_sound, repaired
from reference_impl.plan.coherent.steady import rebuilt
from reference_impl.plan.revisions import Revision


class CoherentSets:
    """Writes the PodGangMaps of sets, and reports how far an update is."""

    def __init__(self, cache: Cache, writer: Writer, held: GangMaps) -> None:
        self._cache, self._writer, self._maps = cache, writer, held

    async def settle(self, pcs: PodCliqueSet) -> Step | None:
        """Bring the maps of all replicas up to date; returns what the update does in the replica whose turn it is."""
        step: Step | None = None
        if not revisions.of_set(pcs, self._maps.policy).has(update_progress.generation(pcs)):
            return None  # the set has changed during this pass
        for index in range(pcs.spec.replicas):
            found = await self._replica(pcs, index)
            if index == update_progress.turn(pcs):
                step = found
        return step

    async def adopt(self, pcs: PodCliqueSet) -> None:
        """Write the maps of replicas that have gangs but no map: gangs that were created before there were maps, or
        whose map has been deleted. Nothing else changes (COH-214, COH-268)."""
        for index in range(pcs.spec.replicas):
            gangs = self._maps.gangs(pcs, index)
            if not gangs or self._maps.at(pcs, index) is not None:
                continue
            live = Live(self._cache, pcs, index)
            found = self._adopted(pcs, index, live)
            wanted = ReplicaMap(found, live.hashes(found))
            if not update_progress.running(pcs) and not any(map(map_gangs.of_a_map, gangs)):
                wanted = self._followed(pcs, index, wanted)
            await self._writer.create(self._cache.maps, maps.manifest(pcs, index, wanted))

    def _adopted(self, pcs: PodCliqueSet, index: int, live: Live) -> Layout:
        """The layout of the gangs that exist."""
        gangs = [live.gang(gang) for gang in self._maps.gangs(pcs, index)]
        observed, components = self._maps.observed(pcs, index), self._maps.components(pcs, index)
        return adopted(gangs, components, observed, live.generation(), self._names(pcs, index))

    def _followed(self, pcs: PodCliqueSet, index: int, held: ReplicaMap) -> ReplicaMap:
        """A map whose pods have been replaced within their gangs, if at all."""
        return maps.followed(pcs, held, self._maps.observed(pcs, index), self._maps.templates(pcs))

    def _lost(self, pcs: PodCliqueSet, index: int, held: ReplicaMap) -> Layout:
        """The gangs that exist, if the map lacks any of them, because somebody edited it."""
        known = {entry.name for entry in held.layout}
        lost = [gang for gang in self._maps.gangs(pcs, index) if gang.metadata.name not in known]
        return self._adopted(pcs, index, Live(self._cache, pcs, index)) if lost else ()

    async def _replica(self, pcs: PodCliqueSet, index: int) -> Step | None:
        held, components = self._maps.at(pcs, index), self._maps.components(pcs, index)
        generation, step = update_progress.generation(pcs), None
        if held is None:
            if not self._maps.gangs(pcs, index):
                await self._write(pcs, index, None, bootstrap(components, generation, self._names(pcs, index)))
            return None
        if update.running(pcs):
            gangs = self._whole(pcs, index, held, generation)
            if self._has_turn(pcs, index):
                scope, observed = self._scope(pcs, components), self._maps.observed(pcs, index)
                step = planner.next_step(gangs, scope, observed, generation, gang_layout(pcs), self._names(pcs, index))
                gangs = step.layout if isinstance(step, planner.Advance) else gangs
                if isinstance(step, planner.Complete):
                    gangs = maps.renewed(pcs, replace(held, layout=gangs), self._maps.templates(pcs))
        else:
            gangs = self._rebuilt(pcs, index, held)
            if not update.coherent(pcs) and not update_progress.running(pcs):
                held = self._followed(pcs, index, replace(held, layout=gangs))
                gangs = held.layout
        await self._write(pcs, index, held, gangs)
        return step

    @staticmethod
    def _has_turn(pcs: PodCliqueSet, index: int) -> bool:
        """Whether an update may change the gangs of a replica now."""
        return index == update_progress.turn(pcs)

    async def before_termination(self, pcs: PodCliqueSet, index: int) -> None:
        """Prepare a replica that is about to be terminated. Its gangs are recreated from the map, so that they start in
        the order of their dependencies again. In the middle of an update, the map is replaced by the first layout, of
        the new version: gangs of an old version could not be filled from the present template (COH-262)."""
        held, present = self._maps.at(pcs, index), self._maps.templates(pcs)
        if held is None:
            return
        if update.running(pcs) and maps.outdated(pcs, held, present):
            components = self._maps.components(pcs, index)
            await self._write(pcs, index, held, bootstrap(components, present.generation, self._names(pcs, index)))
        await together(self._writer.delete(self._cache.gangs, gang) for gang in self._maps.gangs(pcs, index))

    def _names(self, pcs: PodCliqueSet, index: int) -> NameSource:
        """Names for new gangs of a replica."""
        prefix, held = names.replica(pcs.metadata.name, index), self._maps.at(pcs, index)
        taken = [gang.metadata.name for gang in self._maps.gangs(pcs, index)]
        taken += [entry.name for entry in held.layout] if held is not None else []
        return lambda count: self._maps.names.take(prefix, count, taken)

    def _scope(self, pcs: PodCliqueSet, components: Iterable[Component]) -> list[Component]:
        scope = update.scope_of(update_progress.of_set(pcs))
        return [component for component in components if component.key in scope]

    def _rebuilt(self, pcs: PodCliqueSet, index: int, held: ReplicaMap) -> Layout:
        """The gangs as the statuses of cliques and scaling groups distribute their members."""
        clique = self._cache.child(self._cache.cliques, pcs)
        group = self._cache.child(self._cache.groups, pcs)
        pods = {
            template.name: own.status.pod_gang_mapping
            if (own := clique(names.clique(pcs.metadata.name, index, template.name))) is not None and own.status
            else None
            for template in children.standalone_templates(pcs)
        }
        indices = {
            config.name: live.status.pod_gang_mapping
            if (live := group(names.scaling_group(pcs.metadata.name, index, config.name))) is not None and live.status
            else None
            for config in children.group_configs(pcs)
        }
        return rebuilt(held.layout, pods, indices, update_progress.generation(pcs), self._lost(pcs, index, held))

    async def _write(self, pcs: PodCliqueSet, index: int, held: ReplicaMap | None, gangs: Layout) -> None:
        """Write a map if it differs."""
        present = self._maps.templates(pcs)
        manifest = maps.manifest(pcs, index, maps.with_layout(held, gangs, present))
        found = self._cache.maps.get(pcs.metadata.namespace, manifest["metadata"]["name"])
        if found is None:
            await self._writer.create(self._cache.maps, manifest)
        elif not drift.owned(manifest, found):
            raise reconcile_error.conflict("PodGangMap", pcs.metadata.namespace, found.metadata.name)
        elif body := maps.correction(manifest, found):
            await self._writer.patch(self._cache.maps, found, body, guard=True)

    # -- the progress in the status of the set

    def progress(
        self, pcs: PodCliqueSet, generation: Revision, found: update_set_replicas.Found, step: Step | None, now: str
    ) -> SetUpdateProgress | None:
        """The progress of a coherent update to this generation; None if there never was an update."""
        known, present = update_progress.generation(pcs), update_progress.of_set(pcs)
        changed = bool(known) and not generation.has(known)
        unscoped = present is not None and present.update_ended_at is None and not update.scope_of(present)
        if changed or unscoped:
            present = update.begun(present, self.scope(pcs, generation), now)
        if present is None:
            return None
        turn = None if changed else update_progress.turn(pcs)
        complete = turn is not None and self._complete(pcs, turn, generation, found, step)
        waiting = self._waiting(pcs, generation, present, turn) if complete or turn is None else []
        present = update.advanced(present, waiting, complete, *_told(step), now)
        return update_set_replicas.counted(pcs, present, generation.hash, found)

    def _complete(
        self, pcs: PodCliqueSet, index: int, generation: Revision, found: update_set_replicas.Found, step: Step | None
    ) -> bool:
        """Whether a replica has been updated: its last sub-step has passed its gate, and the statuses of its cliques
        and scaling groups say so."""
        if index >= pcs.spec.replicas:
            return True
        held = self._maps.at(pcs, index)
        return (
            isinstance(step, planner.Complete)
            and held is not None
            and update_set_replicas.done(found, index, generation.hash)
            and set_of(self._rebuilt(pcs, index, held)) == set_of(held.layout)
        )

    def scope(self, pcs: PodCliqueSet, generation: Revision) -> frozenset[Key]:
        """The components that an update to this generation rolls: those that have changed, and those that the update
        which it interrupts has not finished."""
        present = maps.templates(pcs, generation.hash, self._maps.policy)
        held = [
            (index, replace(found, layout=self._whole(pcs, index, found, generation.hash)))
            for index in range(pcs.spec.replicas)
            if (found := self._maps.at(pcs, index))
        ]
        seen = [(found, self._maps.observed(pcs, index)) for index, found in held]
        changed = {key for found, observed in seen for key in maps.outdated(pcs, found, present, observed)}
        previous = update.scope_of(update_progress.of_set(pcs)) if update_progress.running(pcs) else set()
        states = [scopes.ReplicaState(found.layout, observed) for found, observed in seen]
        return scopes.scope(changed, previous, states, generation.hash)

    def _whole(self, pcs: PodCliqueSet, index: int, held: ReplicaMap, generation: str) -> Layout:
        """The gangs of a replica, with each member in one of them."""
        components, lost = self._maps.components(pcs, index), self._lost(pcs, index, held)
        if not lost and is_sound(held.layout, components):
            return held.layout
        observed = self._maps.observed(pcs, index)
        return repaired(held.layout, components, observed, generation, self._names(pcs, index), lost)

    def _waiting(
        self, pcs: PodCliqueSet, generation: Revision, present: SetUpdateProgress, done: int | None
    ) -> list[int]:
        """The replicas that hold an old version of anything in scope."""
        templates, scope = maps.templates(pcs, generation.hash, self._maps.policy), update.scope_of(present)
        return [
            index
            for index in range(pcs.spec.replicas)
            if index != done
            and (held := self._maps.at(pcs, index)) is not None
            and maps.outdated(pcs, held, templates, self._maps.observed(pcs, index)) & scope
        ]


def set_of(gangs: Layout) -> dict[str, Entry]:
    """The gangs by name: their order does not matter."""
    return {entry.name: entry for entry in gangs}


def gang_layout(pcs: PodCliqueSet) -> GangLayout:
    """How the gangs of an update are laid out (COH-R01)."""
    options = pcs.spec.update_strategy.coherent if pcs.spec.update_strategy else None
    if options is not None and options.gang_layout is not None:
        return options.gang_layout
    named = (pcs.metadata.annotations or {}).get(labels.GANG_LAYOUT)
    return GangLayout.SINGLE_ANCHOR if named == GangLayout.SINGLE_ANCHOR else GangLayout.PER_STEP


def _told(step: Step | None) -> tuple[tuple[str, ...], str]:
    """The gangs that the update waits for, and why."""
    match step:
        case planner.Advance():
            return step.in_flight, ""
        case planner.Wait():
            return step.in_flight, step.reason
    return (), ""
