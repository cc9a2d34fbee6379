"""Mutants in how a coherent update proceeds: its steps, its scope, its gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.plan.coherent import steps
from reference_impl.plan.coherent.components import Component
from reference_impl.plan.coherent.layout import Key
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
