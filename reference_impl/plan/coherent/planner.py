"""The plan for the next sub-step of a coherent update in one replica of a set (spec COH-120 to COH-165)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from reference_impl.api.coherent import GangLayout
from reference_impl.plan.coherent import budget, progress, steps
from reference_impl.plan.coherent.moves import layout_after_move
from reference_impl.plan.coherent.slots import slots
from reference_impl.plan.coherent.steps import SubStepKind
from reference_impl.plan.components import Component, Key
from reference_impl.plan.epochs import Epochs
from reference_impl.plan.layout import Layout
from reference_impl.plan.observed import Observed


@dataclass(frozen=True)
class Advance:
    """The next sub-step, which starts when this layout is written."""

    layout: Layout
    in_flight: tuple[str, ...]
    """The entries that this sub-step waits for, which are the new entry or the anchor that pods have joined."""
    phase: SubStepKind
    batch: dict[Key, int] = field(default_factory=dict)
    """The number of members that move, by component, without zeros."""


@dataclass(frozen=True)
class Wait:
    """The decision that no sub-step may start yet."""

    reason: str
    in_flight: tuple[str, ...] = ()


@dataclass(frozen=True)
class Complete:
    """The decision that the update is complete: all members are updated, and the last sub-step has passed its gate
    (COH-161)."""


Step = Advance | Wait | Complete


def next_step(
    layout: Layout,
    scope: Sequence[Component],
    observed: Observed,
    generation: str,
    gang_layout: GangLayout,
    epochs: Epochs,
) -> Step:
    """Return the next step of the update. `scope` holds the components that the update changes, with the current
    `maxUnavailable`, in the order of the template; `generation` is the set's current generation hash."""
    components = [component for component in scope if component.replicas > 0]
    update_entries = progress.own_entries(layout, generation, components, observed)
    if waiting := progress.unready_entries(update_entries, components, observed):
        return Wait(f"waiting for the PodGangs of epoch {', '.join(waiting)} to become Ready", waiting)
    if reason := progress.incomplete_reason(update_entries, components, observed):
        return Wait(reason, progress.in_flight_entries(update_entries, components, observed))
    slots_by_key = {component.key: slots(layout, component.key, observed, generation) for component in components}
    remaining = {
        key: sum(not slot.has_current_template for slot in component_slots)
        for key, component_slots in slots_by_key.items()
    }
    if not any(remaining.values()):
        shortages = [reason for component in components if (reason := budget.shortage_reason(component, slots_by_key))]
        return Wait("; ".join(shortages)) if shortages else Complete()
    done_counts = {key: len(component_slots) - remaining[key] for key, component_slots in slots_by_key.items()}
    sub_step = steps.sub_step(components, done_counts, remaining)
    anchor = progress.open_anchor(update_entries)
    if anchor is None and steps.moves_pods(sub_step.counts):
        sub_step = steps.first_sub_step(components, remaining)
    opens = sub_step.phase is SubStepKind.ANCHOR
    batch = budget.affordable_batch(components, slots_by_key, sub_step.counts, whole=opens)
    if not any(batch.values()):
        return Wait(budget.exhaustion_reason(components, slots_by_key, sub_step.counts))
    join = None if opens and gang_layout is GangLayout.PER_STEP else anchor
    result, touched = layout_after_move(
        layout, update_entries, batch, join, generation, epochs, opens=opens and join is None
    )
    return Advance(
        result, touched, sub_step.phase, {key: len(chosen_slots) for key, chosen_slots in batch.items() if chosen_slots}
    )


def converged_layout(layout: Layout, scope: Sequence[Component], generation: str, *, complete: bool) -> Layout:
    """Return the layout in which entries that hold no component of the update's scope have the current generation. With
    `complete`, which means that the update has nothing left to do, all entries have the current generation (GM-160)."""
    keys = {component.key for component in scope}
    return tuple(
        replace(entry, generation=generation) if complete or keys.isdisjoint(entry.keys) else entry for entry in layout
    )
