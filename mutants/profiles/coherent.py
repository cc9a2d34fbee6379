"""Mutants in how a coherent update proceeds: its steps, its scope, its gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.plan.coherent import budget, planner, slots, steps
from reference_impl.plan.coherent.budget import Batch
from reference_impl.plan.coherent.components import Component
from reference_impl.plan.coherent.layout import Key, Layout
from reference_impl.plan.coherent.observed import Observed
from reference_impl.plan.coherent.slots import Slot
from reference_impl.plan.coherent.steps import Phase, SubStep


@mutant("step-in-one", "operator", "replaces a whole step with its anchor", "COHR-030", "COHR-047")
def _step_in_one() -> None:
    def beginning(components: Sequence[Component], left: Mapping[Key, int]) -> SubStep:
        count = steps.step_count(components)
        return SubStep(Phase.ANCHOR, {c.key: min(steps.target(c, count), left[c.key]) for c in components})

    replace(steps, "beginning", beginning)


@mutant("one-step-only", "operator", "opens one anchor with the minimum, and rolls the rest as tails", "COHR-032")
def _one_step_only() -> None:
    replace(steps, "step_count", lambda components: 1)


@mutant("batch-without-limit", "operator", "takes all members of a step down at once", "INV-011", "COHR-047")
def _batch_without_limit() -> None:
    right = steps.sub_step

    def sub_step(components: Sequence[Component], done: Mapping[Key, int], left: Mapping[Key, int]) -> SubStep:
        found = right(components, done, left)
        return found if found.phase is Phase.ANCHOR else SubStep(found.phase, dict(left))

    def affordable(
        components: Sequence[Component], places: budget.Slots, wanted: Mapping[Key, int], *, whole: bool
    ) -> Batch:
        return {c.key: [s for s in places[c.key] if not s.done][: wanted[c.key]] for c in components}

    replace(steps, "sub_step", sub_step)
    replace(budget, "affordable", affordable)


@mutant("last-index-first", "operator", "replaces the replicas with the highest indices first", "COHR-037")
def _last_index_first() -> None:
    right = slots.slots

    def backwards(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        return right(layout, key, observed, generation)[::-1]

    replace(planner, "slots", backwards)
