"""The progress of coherent updates in the status of a set (spec COH-110 to COH-116, COH-160 to COH-162, GM-153)."""

from __future__ import annotations

from dataclasses import replace

from reference_impl.api.models import PodCliqueSet, SetUpdateProgress
from reference_impl.control.layouts import Layouts
from reference_impl.control.maps import MapWriter
from reference_impl.plan import update_progress, update_set_replicas
from reference_impl.plan.coherent import planner, update, versions
from reference_impl.plan.coherent import scope as scopes
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.components import Key
from reference_impl.plan.revisions import Revision


class CoherentProgress:
    """Computes the progress of coherent updates."""

    def __init__(self, layouts: Layouts, maps: MapWriter) -> None:
        self._layouts, self._maps = layouts, maps

    def progress(
        self,
        pcs: PodCliqueSet,
        generation: Revision,
        observed: update_set_replicas.ObservedSet,
        step: Step | None,
        now: str,
    ) -> SetUpdateProgress | None:
        """Return the progress of a coherent update to this generation, or None if there has never been an update."""
        stored_generation, current_progress = update_progress.generation(pcs), update_progress.set_progress(pcs)
        has_changed = bool(stored_generation) and not generation.has(stored_generation)
        unscoped = (
            current_progress is not None
            and current_progress.update_ended_at is None
            and not update.scope_of(current_progress)
        )
        if has_changed or unscoped:
            current_progress = update.started_progress(current_progress, self.scope(pcs, generation), now)
        if current_progress is None:
            return None
        turn = None if has_changed else update_progress.current_replica(pcs)
        complete = turn is not None and self._complete(pcs, turn, generation, observed, step)
        outdated_replicas = (
            self._outdated_replicas(pcs, generation, current_progress, turn) if complete or turn is None else []
        )
        current_progress = update.advanced_progress(
            current_progress, outdated_replicas, complete, *_in_flight(step), now
        )
        return update_set_replicas.with_counts(pcs, current_progress, generation.hash, observed)

    def _complete(
        self,
        pcs: PodCliqueSet,
        index: int,
        generation: Revision,
        observed: update_set_replicas.ObservedSet,
        step: Step | None,
    ) -> bool:
        """Return whether a replica has been updated. This is the case when its last sub-step has passed its gate and
        the statuses of its cliques and scaling groups report the update as complete."""
        if index >= pcs.spec.replicas:
            return True
        return isinstance(step, planner.Complete) and update_set_replicas.is_updated(observed, index, generation.hash)

    def scope(self, pcs: PodCliqueSet, generation: Revision) -> frozenset[Key]:
        """Return the components in the scope of an update to this generation: the changed components, and the
        components that an interrupted update has not finished."""
        current_templates = versions.templates(pcs, generation.hash, self._layouts.policy)
        indexed_maps = [
            (index, replace(stored, layout=self._maps.complete_layout(pcs, index, stored, generation.hash)))
            for index in range(pcs.spec.replicas)
            if (stored := self._layouts.stored(pcs, index))
        ]
        observed_maps = [(stored, self._layouts.observed(pcs, index)) for index, stored in indexed_maps]
        outdated_keys = {
            key
            for stored, observed in observed_maps
            for key in versions.outdated_components(pcs, stored, current_templates, observed)
        }
        previous_scope = (
            update.scope_of(update_progress.set_progress(pcs)) if update_progress.is_running(pcs) else set()
        )
        states = [scopes.ReplicaState(stored.layout, observed) for stored, observed in observed_maps]
        return scopes.scope(outdated_keys, previous_scope, states, generation.hash)

    def _outdated_replicas(
        self, pcs: PodCliqueSet, generation: Revision, current_progress: SetUpdateProgress, completed_index: int | None
    ) -> list[int]:
        """Return the replicas that hold an old version of any component in scope."""
        templates = versions.templates(pcs, generation.hash, self._layouts.policy)
        scope = update.scope_of(current_progress)
        return [
            index
            for index in range(pcs.spec.replicas)
            if index != completed_index
            and (stored := self._layouts.stored(pcs, index)) is not None
            and versions.outdated_components(pcs, stored, templates, self._layouts.observed(pcs, index)) & scope
        ]


def _in_flight(step: Step | None) -> tuple[tuple[str, ...], str]:
    """Return the epochs that the update waits for, and the reason."""
    match step:
        case planner.Advance():
            return step.in_flight, ""
        case planner.Wait():
            return step.in_flight, step.reason
    return (), ""
