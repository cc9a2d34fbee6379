"""The sub-steps of a coherent update of one replica of a set in which nothing fails (coherent.md, section 3.3).

The proposal says both that a plan is made once from the totals and that each step is planned from what remains; the two
differ where a division leaves a rest (COH-123). Both are readings of it, and either is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.grove.coherent.model import Component, Key


@dataclass(frozen=True)
class Batch:
    """The pods or replicas of each component that one sub-step replaces. `opens`: whether it opens an anchor, which
    holds all of them; else each replica of a scaling group has a gang of its own, and pods join an anchor."""

    opens: bool
    counts: Mapping[Key, int]

    def __str__(self) -> str:
        members = ", ".join(f"{count} {key.name}" for key, count in sorted(self.counts.items()) if count)
        return ("anchor " if self.opens else "") + "{" + members + "}"


@dataclass(frozen=True)
class Steps:
    """The numbers of a plan: how many steps open an anchor, what each of them replaces, and what is left after them."""

    count: int
    target: Mapping[Key, int]
    leftover: Mapping[Key, int]


def steps(components: Sequence[Component]) -> Steps:
    """The formulas of COH-120. A component without replicas is left out (COH-229c); one that has fewer than its minimum
    makes one step of all that there is (COH-229b)."""
    populated = [component for component in components if component.replicas > 0]
    if not populated:
        return Steps(0, {}, {})
    count = max(1, min(component.replicas // max(1, component.minimum) for component in populated))
    target = {
        component.key: _floor(component) + (component.replicas - count * _floor(component)) // count
        for component in populated
    }
    return Steps(
        count, target, {component.key: component.replicas - count * target[component.key] for component in populated}
    )


def from_totals(components: Sequence[Component]) -> list[Batch]:
    """The sub-steps, planned once."""
    plan = steps(components)
    batches: list[Batch] = []
    for _ in range(plan.count):
        batches += _step(components, plan.target)
    return batches + list(_tails(components, plan.leftover))


def from_remainder(components: Sequence[Component]) -> list[Batch]:
    """The sub-steps, where each step is planned from what remains before it."""
    remaining = {component.key: component.replicas for component in components if component.replicas > 0}
    batches: list[Batch] = []
    while any(remaining.values()):
        rest = [
            Component(e.key, remaining[e.key], e.minimum, e.unavailable) for e in components if remaining.get(e.key)
        ]
        if len(rest) < len(remaining) or any(component.replicas < component.minimum for component in rest):
            return batches + list(_tails(components, remaining)) if batches else from_totals(components)
        target = steps(rest).target
        batches += _step(rest, target)
        remaining = {key: count - target.get(key, 0) for key, count in remaining.items()}
    return batches


def readings(components: Sequence[Component], *, single_anchor: bool = False) -> list[list[Batch]]:
    """The sequences of sub-steps that are accepted. `single_anchor`: only the first step opens an anchor (COH-R01)."""
    sequences = [from_totals(components), from_remainder(components)]
    if not any(component.key.kind == "group" for component in components):
        sequences.append(_with_one_anchor(components))
    if single_anchor:
        sequences = [[Batch(at == 0, batch.counts) for at, batch in enumerate(sequence)] for sequence in sequences]
    return [sequence for at, sequence in enumerate(sequences) if sequence not in sequences[:at]]


def follows(observed: Sequence[Batch], reading: Sequence[Batch], components: Sequence[Component]) -> bool:
    """Return whether sub-steps are those of a reading. The members of an anchor are fixed. Replacements between two
    anchors may be divided into other sub-steps, as long as none of them exceeds a budget: the texts say "at most"
    (COH-121)."""
    budgets = {component.key: max(1, component.unavailable) for component in components}
    tails = [batch for batch in observed if not batch.opens]
    within = all(count <= budgets.get(key, 0) for batch in tails for key, count in batch.counts.items() if count)
    return within and _stages(observed) == _stages(reading)


def _stages(batches: Sequence[Batch]) -> list[tuple[dict[Key, int], dict[Key, int]]]:
    """Return the members of each anchor, and the members that are replaced until the next anchor. Writes that only
    remove members count with those that put them into new gangs: entries may be patched one by one."""
    stages: list[tuple[dict[Key, int], dict[Key, int]]] = []
    for batch in batches:
        counts = {key: count for key, count in batch.counts.items() if count}
        if not counts:
            continue
        if batch.opens:
            stages.append((counts, {}))
            continue
        if not stages:
            stages.append(({}, {}))
        for key, count in counts.items():
            stages[-1][1][key] = stages[-1][1].get(key, 0) + count
    return stages


def _with_one_anchor(components: Sequence[Component]) -> list[Batch]:
    """The sub-steps of standalone cliques alone by the newest text: one anchor, which takes the others in (GM-154)."""
    populated = [component for component in components if component.replicas > 0]
    return list(_step(populated, {component.key: component.replicas for component in populated}))


def gangs(components: Sequence[Component]) -> int:
    """Return how many gangs a replica of the set has after an update of all its components (COH-128)."""
    plan = steps(components)
    return plan.count + sum(
        component.replicas - plan.count * _floor(component)
        for component in components
        if component.key.kind == "group" and component.replicas
    )


def _step(components: Sequence[Component], target: Mapping[Key, int]) -> Iterator[Batch]:
    planned = [component for component in components if component.key in target]
    yield Batch(True, {component.key: _floor(component) for component in planned})
    yield from _tails(planned, {component.key: target[component.key] - _floor(component) for component in planned})


def _tails(components: Sequence[Component], remaining: Mapping[Key, int]) -> Iterator[Batch]:
    """Sub-steps that open no anchor: all components together, each within its budget."""
    budget = {component.key: max(1, component.unavailable) for component in components}
    unmoved = {key: count for key, count in remaining.items() if count > 0}
    while unmoved:
        batch = {key: min(budget[key], count) for key, count in unmoved.items()}
        yield Batch(False, batch)
        unmoved = {key: count - batch[key] for key, count in unmoved.items() if count > batch[key]}


def _floor(component: Component) -> int:
    """Return the number of members of a component in an anchor."""
    return max(1, min(component.minimum, component.replicas))
