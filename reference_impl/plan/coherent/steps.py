"""The steps of a coherent update: how many members of each component move together (spec COH-120 to COH-141).

Each step moves `minAvailable` members of all components into a new anchor, and then a share of the remaining members.
Members that no step covers are moved at the end. The numbers are computed from the totals and do not change during the
update (COH-123).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from reference_impl.plan.components import Component, Key, Kind, groups


class SubStepKind(StrEnum):
    """The kinds of sub-steps."""

    ANCHOR = "anchor"
    """Starts a step with `minAvailable` members of each component."""
    TAIL = "tail"
    """Moves more members of the same step."""
    LEFTOVER = "leftover"
    """Moves members that no step covers."""


@dataclass(frozen=True)
class SubStep:
    """The members that the next sub-step should move."""

    phase: SubStepKind
    counts: dict[Key, int]
    """The number of members to move of each component, before the budget is applied."""


def step_count(components: Sequence[Component]) -> int:
    """Return the number of steps that start with an anchor, which is at most one if no scaling group is updated
    (GM-154). Components without members are ignored (COH-229c)."""
    nonempty = [component for component in components if component.replicas]
    steps = min((component.replicas // component.minimum for component in nonempty), default=0)
    return steps if groups(nonempty) else min(1, steps)


def members_per_step(component: Component, steps: int) -> int:
    """Return the number of members of a component in each step."""
    return component.minimum + (component.replicas - steps * component.minimum) // steps


def sub_step(components: Sequence[Component], done_counts: Mapping[Key, int], remaining: Mapping[Key, int]) -> SubStep:
    """Return the next sub-step, given the numbers of updated and remaining members of each component."""
    steps = step_count(components)
    targets = {component.key: members_per_step(component, steps) for component in components}
    covered_counts = {key: min(done_counts[key], steps * targets[key]) for key in targets}
    step = min(covered_counts[key] // targets[key] for key in targets)
    counts_in_step = {key: covered_counts[key] - step * targets[key] for key in targets}
    if step == steps:
        return SubStep(SubStepKind.LEFTOVER, {c.key: min(c.budget, remaining[c.key]) for c in components})
    if any(counts_in_step[component.key] < component.minimum for component in components):
        return first_sub_step(components, remaining)
    missing_counts = {key: max(0, targets[key] - counts_in_step[key]) for key in targets}
    return SubStep(
        SubStepKind.TAIL, {c.key: min(c.budget, missing_counts[c.key], remaining[c.key]) for c in components}
    )


def first_sub_step(components: Sequence[Component], remaining: Mapping[Key, int]) -> SubStep:
    """Return the first sub-step of a step."""
    return SubStep(SubStepKind.ANCHOR, {c.key: min(c.minimum, remaining[c.key]) for c in components})


def moves_pods(counts: Mapping[Key, int]) -> bool:
    """Return whether standalone pods move, which need an anchor to join (COH-038)."""
    return any(number for key, number in counts.items() if key.kind is Kind.CLIQUE)
