"""The plan according to the first version of the proposal, for comparison only (spec COH-104, COH-158, COH-166 to
COH-169).

This version has no `maxUnavailable`. It creates one anchor after another and, when all anchors are Ready, moves all
remaining members at once. No set is updated in this way unless the mutant `first-text` replaces `planner.next_step`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reference_impl.plan.coherent import progress
from reference_impl.plan.coherent.moves import layout_after_move
from reference_impl.plan.coherent.planner import Advance, Complete, Step, Wait
from reference_impl.plan.coherent.slots import Slot, slots
from reference_impl.plan.coherent.steps import SubStepKind
from reference_impl.plan.components import Component, Key, Kind
from reference_impl.plan.epochs import Epochs
from reference_impl.plan.layout import Entry, Layout, Role
from reference_impl.plan.observed import Observed


def first_layout(components: Sequence[Component], generation: str, epochs: Epochs) -> Layout:
    """Return the first layout, which performs all iterations of an update at once."""
    members = {c.key: list(range(c.replicas)) for c in components if c.replicas}
    nonempty = [component for component in components if component.key in members]
    entries: list[Entry] = []
    while any(members.values()):
        phase, counts = iteration(nonempty, {key: len(numbers) for key, numbers in members.items()})
        batch = {key: members[key][:count] for key, count in counts.items() if count}
        members = {key: numbers[counts[key] :] for key, numbers in members.items()}
        pods = {key.name: len(numbers) for key, numbers in batch.items() if key.kind is Kind.CLIQUE}
        indices = {key.name: tuple(numbers) for key, numbers in batch.items() if key.kind is Kind.GROUP}
        role = Role.ANCHOR if phase is SubStepKind.ANCHOR else Role.TAIL
        entries.append(Entry("", generation, role, pods, indices))
    keys = epochs(len(entries))
    keyed_entries = [replace(entry, key=key) for key, entry in zip(keys, entries, strict=True)]
    anchors = tuple(entry.key for entry in keyed_entries if entry.anchor)
    return tuple(entry if entry.anchor else replace(entry, depends_on=anchors) for entry in keyed_entries)


def iteration(components: Sequence[Component], remaining: Mapping[Key, int]) -> tuple[SubStepKind, dict[Key, int]]:
    """Return the members that the next iteration moves: `minAvailable` members of each component, with all standalone
    pods if this is the last anchor, or all remaining members if there are too few for an anchor."""
    if _fills_anchor(components, remaining):
        counts = {component.key: component.minimum for component in components}
        remaining_counts = {key: remaining[key] - count for key, count in counts.items()}
        if not _fills_anchor(components, remaining_counts):
            counts |= {key: count for key, count in remaining.items() if key.kind is Kind.CLIQUE}
        return SubStepKind.ANCHOR, counts
    pods_left = any(count for key, count in remaining.items() if key.kind is Kind.CLIQUE)
    return SubStepKind.ANCHOR if pods_left else SubStepKind.LEFTOVER, dict(remaining)


def _fills_anchor(components: Sequence[Component], remaining: Mapping[Key, int]) -> bool:
    return all(remaining[component.key] >= component.minimum for component in components)


def next_step(layout: Layout, scope: Sequence[Component], observed: Observed, generation: str, epochs: Epochs) -> Step:
    """Return the next step of the update. The lowest indices and the oldest gangs are moved first."""
    components = [component for component in scope if component.replicas > 0]
    update_entries = progress.own_entries(layout, generation, components, observed)
    if waiting := progress.unready_entries(update_entries, components, observed):
        return Wait(f"waiting for the PodGangs of epoch {', '.join(waiting)} to become Ready", waiting)
    slots_by_key = {c.key: _in_order(layout, c.key, observed, generation) for c in components}
    if not any(slots_by_key.values()):
        return Complete()
    phase, counts = iteration(components, {key: len(component_slots) for key, component_slots in slots_by_key.items()})
    batch = {key: component_slots[: counts[key]] for key, component_slots in slots_by_key.items()}
    result, touched = layout_after_move(
        layout, update_entries, batch, None, generation, epochs, opens=phase is SubStepKind.ANCHOR
    )
    return Advance(
        result, touched, phase, {key: len(component_slots) for key, component_slots in batch.items() if component_slots}
    )


def _in_order(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
    age = {entry.key: position for position, entry in enumerate(layout)}
    open_slots = [slot for slot in slots(layout, key, observed, generation) if not slot.has_current_template]
    return sorted(open_slots, key=lambda slot: (slot.index, age[slot.entry]))
