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
    """What one sub-step replaces: how many pods or replicas of each component. `opens`: whether it opens an anchor,
    which holds all of it; else each replica of a scaling group has a gang of its own, and pods join an anchor."""

    opens: bool
    counts: Mapping[Key, int]

    def __str__(self) -> str:
        held = ", ".join(f"{count} {key.name}" for key, count in sorted(self.counts.items()) if count)
        return ("anchor " if self.opens else "") + "{" + held + "}"


@dataclass(frozen=True)
class Steps:
    """The numbers of a plan: how many steps open an anchor, what each of them replaces, and what is left after them."""

    count: int
    target: Mapping[Key, int]
    leftover: Mapping[Key, int]


def steps(components: Sequence[Component]) -> Steps:
    """The formulas of COH-120. A component without replicas is left out (COH-229c); one that has fewer than its minimum
    makes one step of all that there is (COH-229b)."""
    there = [each for each in components if each.replicas > 0]
    if not there:
        return Steps(0, {}, {})
    count = max(1, min(each.replicas // max(1, each.minimum) for each in there))
    target = {each.key: _floor(each) + (each.replicas - count * _floor(each)) // count for each in there}
    return Steps(count, target, {each.key: each.replicas - count * target[each.key] for each in there})


def from_totals(components: Sequence[Component]) -> list[Batch]:
    """The sub-steps, planned once."""
    plan = steps(components)
    found: list[Batch] = []
    for _ in range(plan.count):
        found += _step(components, plan.target)
    return found + list(_tails(components, plan.leftover))


def from_remainder(components: Sequence[Component]) -> list[Batch]:
    """The sub-steps, where each step is planned from what remains before it."""
    left = {each.key: each.replicas for each in components if each.replicas > 0}
    found: list[Batch] = []
    while any(left.values()):
        rest = [Component(e.key, left[e.key], e.minimum, e.unavailable) for e in components if left.get(e.key)]
        if len(rest) < len(left) or any(each.replicas < each.minimum for each in rest):
            return found + list(_tails(components, left)) if found else from_totals(components)
        target = steps(rest).target
        found += _step(rest, target)
        left = {key: count - target.get(key, 0) for key, count in left.items()}
    return found


def readings(components: Sequence[Component], *, single_anchor: bool = False) -> list[list[Batch]]:
    """The sequences of sub-steps that are accepted. `single_anchor`: only the first step opens an anchor (COH-R01)."""
    found = [from_totals(components), from_remainder(components)]
    if not any(each.key.kind == "group" for each in components):
        found.append(_with_one_anchor(components))
    if single_anchor:
        found = [[Batch(at == 0, batch.counts) for at, batch in enumerate(each)] for each in found]
    return [each for at, each in enumerate(found) if each not in found[:at]]


def follows(seen: Sequence[Batch], reading: Sequence[Batch], components: Sequence[Component]) -> bool:
    """Whether sub-steps are those of a reading. What an anchor holds is fixed; what is replaced between two anchors may
    be divided into other sub-steps, as long as none of them exceeds a budget: the texts say "at most" (COH-121)."""
    budgets = {each.key: max(1, each.unavailable) for each in components}
    tails = [batch for batch in seen if not batch.opens]
    within = all(count <= budgets.get(key, 0) for batch in tails for key, count in batch.counts.items() if count)
    return within and _stages(seen) == _stages(reading)


def _stages(batches: Sequence[Batch]) -> list[tuple[dict[Key, int], dict[Key, int]]]:
    """What each anchor holds, and what is replaced until the next one. Writes that only take members away count with
    those that put them into new gangs: entries may be patched one by one."""
    found: list[tuple[dict[Key, int], dict[Key, int]]] = []
    for batch in batches:
        counts = {key: count for key, count in batch.counts.items() if count}
        if not counts:
            continue
        if batch.opens:
            found.append((counts, {}))
            continue
        if not found:
            found.append(({}, {}))
        for key, count in counts.items():
            found[-1][1][key] = found[-1][1].get(key, 0) + count
    return found


def _with_one_anchor(components: Sequence[Component]) -> list[Batch]:
    """The sub-steps of standalone cliques alone by the newest text: one anchor, which takes the others in (GM-154)."""
    there = [each for each in components if each.replicas > 0]
    return list(_step(there, {each.key: each.replicas for each in there}))


def gangs(components: Sequence[Component]) -> int:
    """How many gangs a replica of the set has after an update of all its components (COH-128)."""
    plan = steps(components)
    return plan.count + sum(
        each.replicas - plan.count * _floor(each) for each in components if each.key.kind == "group" and each.replicas
    )


def _step(components: Sequence[Component], target: Mapping[Key, int]) -> Iterator[Batch]:
    there = [each for each in components if each.key in target]
    yield Batch(True, {each.key: _floor(each) for each in there})
    yield from _tails(there, {each.key: target[each.key] - _floor(each) for each in there})


def _tails(components: Sequence[Component], remaining: Mapping[Key, int]) -> Iterator[Batch]:
    """Sub-steps that open no anchor: all components together, each within its budget."""
    budget = {each.key: max(1, each.unavailable) for each in components}
    left = {key: count for key, count in remaining.items() if count > 0}
    while left:
        batch = {key: min(budget[key], count) for key, count in left.items()}
        yield Batch(False, batch)
        left = {key: count - batch[key] for key, count in left.items() if count > batch[key]}


def _floor(component: Component) -> int:
    """How much of a component an anchor holds."""
    return max(1, min(component.minimum, component.replicas))
