"""Mutants that plan the sub-steps of a coherent update incorrectly."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.coherent import GangLayout
from reference_impl.api.models import PodCliqueSet
from reference_impl.control import maps as control
from reference_impl.plan import lines
from reference_impl.plan.coherent import budget, first_text, moves, planner, progress, scope, slots, steps, versions
from reference_impl.plan.coherent.budget import Batch
from reference_impl.plan.coherent.moves import layout_after_move as original_moved
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.coherent.slots import Slot
from reference_impl.plan.coherent.steps import SubStep, SubStepKind
from reference_impl.plan.coherent.versions import Templates
from reference_impl.plan.components import Component, Key, Kind
from reference_impl.plan.epochs import Epochs
from reference_impl.plan.layout import Entry, Layout, Role, tidy_layout
from reference_impl.plan.maps import StoredMap
from reference_impl.plan.observed import Observed

original_slots = slots.slots


@mutant("operator", "replaces a whole step with its anchor", "COHR-030")
def _step_in_one() -> None:
    def beginning(components: Sequence[Component], remaining: Mapping[Key, int]) -> SubStep:
        count = steps.step_count(components)
        return SubStep(
            SubStepKind.ANCHOR, {c.key: min(steps.members_per_step(c, count), remaining[c.key]) for c in components}
        )

    replace(steps, "first_sub_step", beginning)
    _ignore_the_budget()  # otherwise no such anchor is ever opened, and the mutant makes no difference


@mutant("operator", "opens one anchor with the minimum, then only tails", "COHR-032", "COHR-092")
def _one_step_only() -> None:
    replace(steps, "step_count", lambda components: 1)


@mutant("operator", "opens anchors with less than the minimum", "COHR-043", "COHR-045")
@instead_of(steps, "first_sub_step")
def _small_anchors(components: Sequence[Component], remaining: Mapping[Key, int]) -> SubStep:
    return SubStep(SubStepKind.ANCHOR, {c.key: min(max(1, c.minimum - 1), remaining[c.key]) for c in components})


@mutant("operator", "takes all members of a step down at once", "INV-011", "COHR-047")
def _batch_without_limit() -> None:
    original = steps.sub_step

    def sub_step(components: Sequence[Component], done: Mapping[Key, int], remaining: Mapping[Key, int]) -> SubStep:
        result = original(components, done, remaining)
        return result if result.phase is SubStepKind.ANCHOR else SubStep(result.phase, dict(remaining))

    replace(steps, "sub_step", sub_step)
    _ignore_the_budget()


def _ignore_the_budget() -> None:
    def affordable(
        components: Sequence[Component], places: budget.Slots, counts: Mapping[Key, int], *, whole: bool
    ) -> Batch:
        return {c.key: [s for s in places[c.key] if not s.has_current_template][: counts[c.key]] for c in components}

    replace(budget, "affordable_batch", affordable)


@mutant("operator", "replaces the replicas with the highest indices first", "COHR-037")
@instead_of(planner, "slots")
def _last_index_first(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
    return original_slots(layout, key, observed, generation)[::-1]


@mutant("operator", "replaces available members before unavailable ones", "COHR-063")
def _broken_last() -> None:
    def sound_first(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        members = original_slots(layout, key, observed, generation)
        return sorted(members, key=lambda slot: (not slot.available, slot.turn))

    replace(planner, "slots", sound_first)
    _ignore_the_budget()


@mutant("operator", "replaces nothing while a component has too few available members", "COHR-069")
@around(budget, "affordable_batch")
def _broken_sets_wait(
    original: Original, components: Sequence[Component], places: budget.Slots, counts: Mapping[Key, int], *, whole: bool
) -> Batch:
    if any(budget.shortage_reason(component, places) for component in components):
        return {component.key: [] for component in components}
    return original(components, places, counts, whole=whole)


@mutant("operator", "begins a sub-step whatever has become of the one before", "INV-017", "COHR-060", "COHR-109")
def _gates_ignored() -> None:
    replace(progress, "unready_entries", lambda update_entries, components, observed: ())
    replace(progress, "incomplete_reason", lambda update_entries, components, observed: None)
    _ignore_the_budget()


@mutant("operator", "does not wait for pods that have joined an anchor", "COHR-109")
def _joined_pods_not_awaited() -> None:
    replace(progress, "incomplete_reason", lambda update_entries, components, observed: None)


def progress_by_count(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
    """Assume that the finished replicas have the lowest indices, which is wrong after a revert."""
    members = original_slots(layout, key, observed, generation)
    if key.kind is Kind.CLIQUE:
        return members
    done = sum(slot.has_current_template for slot in members)
    return [
        dataclasses.replace(slot, has_current_template=slot.has_current_template or slot.index < done)
        for slot in members
    ]


@mutant("operator", "counts the replicas that are done, and not which ones are", "COHR-065")
def _progress_by_count() -> None:
    replace(planner, "slots", progress_by_count)


@mutant("operator", "replaces all that is of an old generation", "COHR-040", "COHR-041", "COHR-042", "COHR-098")
def _everything_in_scope() -> None:
    def outdated(
        pcs: PodCliqueSet, stored: StoredMap, present: Templates, observed: Observed | None = None
    ) -> set[Key]:
        old = [entry for entry in stored.layout if entry.generation != present.generation]
        return {key for entry in old for key in entry.keys}

    def settled(pcs: PodCliqueSet, stored: StoredMap, entry: Entry, key: Key, present: Templates) -> bool:
        return entry.generation == present.generation

    def all_of(
        changed: Iterable[Key], previous: Iterable[Key], replicas: Iterable[scope.ReplicaState], generation: str
    ) -> frozenset[Key]:
        return frozenset({*changed, *previous})

    def by_generation(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        new = {entry.key for entry in layout if entry.generation == generation}
        members = original_slots(layout, key, observed, generation)
        return [dataclasses.replace(slot, has_current_template=slot.entry in new) for slot in members]

    replace(planner, "slots", by_generation)
    replace(versions, "outdated_components", outdated)
    replace(versions, "has_current_templates", settled)
    replace(scope, "scope", all_of)


# -- the gangs of a sub-step -------------------------------------------------------------------------------------------


@mutant("operator", "takes members out of their gangs before it puts them into new ones", "COHR-031")
def _two_writes() -> None:
    half_done: dict[str, tuple[Layout, tuple[str, ...]]] = {}

    def moved(
        layout: Layout,
        update_entries: Layout,
        batch: Batch,
        join: Entry | None,
        generation: str,
        epochs: Epochs,
        *,
        opens: bool,
    ) -> tuple[Layout, tuple[str, ...]]:
        if generation in half_done:
            return half_done.pop(generation)
        half_done[generation] = original_moved(layout, update_entries, batch, join, generation, epochs, opens=opens)
        return tidy_layout(moves._without_batch(layout, batch)), ()

    replace(planner, "layout_after_move", moved)


@mutant("operator", "puts all further replicas of a sub-step into one gang", "COHR-030")
@instead_of(planner, "layout_after_move")
def _tails_share_a_gang(layout: Layout, *rest: Any, opens: bool) -> tuple[Layout, tuple[str, ...]]:
    result, touched = original_moved(layout, *rest, opens=opens)
    old_keys = {entry.key for entry in layout}
    return tuple(
        entry if entry.key in old_keys else dataclasses.replace(entry, role=Role.ANCHOR) for entry in result
    ), touched


@mutant("operator", "lets pods join the first anchor of an update", "COHR-046")
@instead_of(progress, "open_anchor")
def _pods_join_the_first_anchor(update_entries: Layout) -> Entry | None:
    return next((entry for entry in update_entries if entry.anchor), None)


@mutant("operator", "marks no anchor that has no pods of a standalone clique", "COHR-044")
@instead_of(planner, "layout_after_move")
def _anchors_need_pods(layout: Layout, *rest: Any, opens: bool) -> tuple[Layout, tuple[str, ...]]:
    result, touched = original_moved(layout, *rest, opens=opens)
    old_keys = {entry.key for entry in layout}
    return tuple(
        entry if entry.key in old_keys or entry.cliques else dataclasses.replace(entry, role=Role.TAIL)
        for entry in result
    ), touched


@mutant("operator", "unmarks anchors that lose their last replica of a group", "COHR-041")
@around(lines, "_labels_by_epoch")
def _drained_anchors_unmarked(original: Original, entry: Entry) -> dict[str, str]:
    return original(entry if entry.groups else dataclasses.replace(entry, role=Role.TAIL))


@mutant("operator", "opens an anchor for each step, whatever the gang layout", "COHR-097")
def _single_anchor_ignored() -> None:
    replace(control, "gang_layout", lambda pcs: GangLayout.PER_STEP)


@mutant("operator", "plans updates and first layouts as the proposal's first text", "COHR-030", "COHR-047")
def _first_text() -> None:
    """`grove-conformance lab coherent` compares this planner with other gang layouts."""

    def next_step(
        layout: Layout,
        scope: Sequence[Component],
        observed: Observed,
        generation: str,
        gang_layout: GangLayout,
        epochs: Epochs,
    ) -> Step:
        return first_text.next_step(layout, scope, observed, generation, epochs)

    replace(planner, "next_step", next_step)
    replace(control, "first_layout", first_text.first_layout)
