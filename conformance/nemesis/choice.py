"""The selection of the plans to be run, and their order: plans that cover something new come first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from conformance.nemesis.catalog import Fault
from conformance.nemesis.points import FaultPlan, FaultPoint


def plans(scenario: str, points: Iterable[FaultPoint], faults: Sequence[Fault]) -> list[FaultPlan]:
    """Return all plans, in the order in which they are to be run. First comes one plan with each fault for each
    combination of verb, resource and step, and for each field that a patch sets for the first time; then a second plan
    for each, and so on. The faults take turns. The fields are considered because a status is patched many times in a
    step, and only one of these patches starts something that a crash can interrupt."""
    turns: Counter[tuple[object, ...]] = Counter()
    covered_fields: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
    ranked: list[tuple[int, int, int, FaultPlan]] = []
    for number, point in enumerate(points):
        is_new = not covered_fields[point.coverage].issuperset(point.fields)
        covered_fields[point.coverage].update(point.fields)
        for fault_index, fault in enumerate(faults):
            if fault.at == point.kind:
                key = (fault.name, *point.coverage)
                ranked.append(
                    (0 if is_new else turns[key], number, fault_index, FaultPlan(scenario, fault.name, point))
                )
                turns[key] += 1
    return [plan for *_, plan in sorted(ranked, key=lambda entry: entry[:3])]
