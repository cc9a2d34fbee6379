"""The planned sub-steps of a coherent update of one set replica if nothing fails (coherent.md, section 3.3).

The proposal says both that the plan is made once from the totals and that each step is planned from the remaining
members. The results differ if a division leaves a remainder (COH-123). Both readings are accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.grove.coherent.model import Component, Key


@dataclass(frozen=True)
class Batch:
    """The pods or replicas of each component that one sub-step replaces. `opens_anchor`: whether the sub-step opens an
    anchor that holds all of them; otherwise, each replica of a scaling group gets its own gang, and pods join an
    anchor."""

    opens_anchor: bool
    counts: Mapping[Key, int]

    def __str__(self) -> str:
        members = ", ".join(f"{count} {key.name}" for key, count in sorted(self.counts.items()) if count)
        return ("anchor " if self.opens_anchor else "") + "{" + members + "}"


@dataclass(frozen=True)
class Steps:
    """The numbers of a plan: how many steps open an anchor (`count`), how many members each of these steps replaces
    (`target`), and how many remain after them (`leftover`)."""

    count: int
    target: Mapping[Key, int]
    leftover: Mapping[Key, int]


def steps(components: Sequence[Component]) -> Steps:
    """Return the numbers of a plan by the formulas of COH-120. A component without replicas is left out (COH-229c); if
    a component has fewer members than its minimum, there is one step with all its members (COH-229b)."""
    populated = [component for component in components if component.replicas > 0]
    if not populated:
        return Steps(0, {}, {})
    count = max(1, min(component.replicas // max(1, component.minimum) for component in populated))
    target = {
        component.key: _anchor_size(component) + (component.replicas - count * _anchor_size(component)) // count
        for component in populated
    }
    return Steps(
        count, target, {component.key: component.replicas - count * target[component.key] for component in populated}
    )


def from_totals(components: Sequence[Component]) -> list[Batch]:
    """Return the sub-steps of a plan that is made once from the totals."""
    plan = steps(components)
    batches: list[Batch] = []
    for _ in range(plan.count):
        batches += _step(components, plan.target)
    return batches + list(_tails(components, plan.leftover))


def from_remainder(components: Sequence[Component]) -> list[Batch]:
    """Return the sub-steps of a plan in which each step is planned from the members that remain before it."""
    remaining = {component.key: component.replicas for component in components if component.replicas > 0}
    batches: list[Batch] = []
    while any(remaining.values()):
        remaining_components = [
            Component(e.key, remaining[e.key], e.minimum, e.unavailable) for e in components if remaining.get(e.key)
        ]
        if len(remaining_components) < len(remaining) or any(
            component.replicas < component.minimum for component in remaining_components
        ):
            return batches + list(_tails(components, remaining)) if batches else from_totals(components)
        target = steps(remaining_components).target
        batches += _step(remaining_components, target)
        remaining = {key: count - target.get(key, 0) for key, count in remaining.items()}
    return batches


def readings(components: Sequence[Component], *, single_anchor: bool = False) -> list[list[Batch]]:
    """Return the accepted sequences of sub-steps. `single_anchor`: only the first step opens an anchor (COH-R01)."""
    sequences = [from_totals(components), from_remainder(components)]
    if not any(component.key.kind == "group" for component in components):
        sequences.append(_with_one_anchor(components))
    if single_anchor:
        sequences = [
            [Batch(index == 0, batch.counts) for index, batch in enumerate(sequence)] for sequence in sequences
        ]
    return [sequence for index, sequence in enumerate(sequences) if sequence not in sequences[:index]]


def follows(observed: Sequence[Batch], reading: Sequence[Batch], components: Sequence[Component]) -> bool:
    """Return whether the observed sub-steps follow a reading. The members of an anchor are fixed. Replacements between
    two anchors may be divided into sub-steps differently, as long as no sub-step exceeds maxUnavailable: the texts say
    "at most" (COH-121)."""
    budgets = {component.key: max(1, component.unavailable) for component in components}
    tails = [batch for batch in observed if not batch.opens_anchor]
    within_budgets = all(
        count <= budgets.get(key, 0) for batch in tails for key, count in batch.counts.items() if count
    )
    return within_budgets and _stages(observed) == _stages(reading)


def _stages(batches: Sequence[Batch]) -> list[tuple[dict[Key, int], dict[Key, int]]]:
    """Return, for each anchor, its members and the members that are replaced before the next anchor. Batches without
    gained members are skipped, because entries may be patched one by one."""
    stages: list[tuple[dict[Key, int], dict[Key, int]]] = []
    for batch in batches:
        counts = {key: count for key, count in batch.counts.items() if count}
        if not counts:
            continue
        if batch.opens_anchor:
            stages.append((counts, {}))
            continue
        if not stages:
            stages.append(({}, {}))
        for key, count in counts.items():
            stages[-1][1][key] = stages[-1][1].get(key, 0) + count
    return stages


def _with_one_anchor(components: Sequence[Component]) -> list[Batch]:
    """Return the sub-steps for standalone cliques alone according to the newest text: one anchor, which the remaining
    pods join (GM-154)."""
    populated = [component for component in components if component.replicas > 0]
    return list(_step(populated, {component.key: component.replicas for component in populated}))


def _step(components: Sequence[Component], target: Mapping[Key, int]) -> Iterator[Batch]:
    planned = [component for component in components if component.key in target]
    yield Batch(True, {component.key: _anchor_size(component) for component in planned})
    yield from _tails(
        planned, {component.key: target[component.key] - _anchor_size(component) for component in planned}
    )


def _tails(components: Sequence[Component], remaining: Mapping[Key, int]) -> Iterator[Batch]:
    """Yield sub-steps that do not open an anchor: each replaces members of all components, within each component's
    maxUnavailable."""
    budget = {component.key: max(1, component.unavailable) for component in components}
    unmoved = {key: count for key, count in remaining.items() if count > 0}
    while unmoved:
        batch = {key: min(budget[key], count) for key, count in unmoved.items()}
        yield Batch(False, batch)
        unmoved = {key: count - batch[key] for key, count in unmoved.items() if count > batch[key]}


def _anchor_size(component: Component) -> int:
    """Return the number of members of a component in an anchor."""
    return max(1, min(component.minimum, component.replicas))
