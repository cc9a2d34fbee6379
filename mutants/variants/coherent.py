"""Variants in coherent updates: what the proposal leaves open, or says in one of two ways."""

from __future__ import annotations

import dataclasses
from typing import Any

from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import defaults
from reference_impl.plan.coherent import gangs, maps, naming, planner, slots, steps
from reference_impl.plan.coherent.layout import Entry, Key, Layout
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.coherent.observed import Observed
from reference_impl.plan.coherent.slots import Slot


@variant("sparse-gang-names", "operator", "numbers gangs in leaps of a second", "COHR-011", "COHR-021", "COHR-030")
def _sparse_gang_names() -> None:
    right = naming.Names.take

    def take(self: naming.Names, prefix: str, count: int, existing: Any) -> list[str]:
        found = right(self, prefix, count, existing)
        first = int(found[0].rpartition("-")[2]) if found else 0
        self._last = first + count * 1_000_000_000
        return [f"{prefix}-{first + place * 1_000_000_000}" for place in range(count)]

    replace(naming.Names, "take", take)


@variant("middle-replicas-first", "operator", "replaces every second replica first", "COHR-030", "COHR-031", "INV-021")
def _middle_replicas_first() -> None:
    right = slots.slots

    def mixed(layout: Layout, key: Key, observed: Observed, generation: str) -> list[Slot]:
        found = right(layout, key, observed, generation)
        lost, sound = [s for s in found if not s.available], [s for s in found if s.available]
        return [*lost, *sound[1::2], *sound[::2]]

    replace(planner, "slots", mixed)


@variant("further-map-labels", "operator", "writes further labels and annotations on maps", "COHR-010", "INV-022")
def _further_map_labels() -> None:
    right = maps.manifest

    def manifest(pcs: PodCliqueSet, index: int, wanted: ReplicaMap) -> dict[str, Any]:
        found = right(pcs, index, wanted)
        found["metadata"]["labels"]["example.com/team"] = "blue"
        found["metadata"]["annotations"]["example.com/note"] = "kept"
        return found

    replace(maps, "manifest", manifest)


@variant("waits-for-all-anchors", "operator", "lets gangs wait for all anchors", "COHR-020", "INV-018")
def _waits_for_all_anchors() -> None:
    def dependencies(layout: Layout, entry: Entry) -> list[str]:
        return [] if entry.anchor else [other.name for other in layout if other.anchor]

    replace(gangs, "dependencies", dependencies)


@variant("budget-of-other-strategies-open", "operator", "defaults maxUnavailable of coherent sets only", "COHR-007")
def _budget_of_other_strategies_open() -> None:
    right = defaults._rolling_updates

    def rolling_updates(template: dict[str, Any], strategy: Any, *, created: bool) -> Any:
        return right(template, strategy, created=False)

    replace(defaults, "_rolling_updates", rolling_updates)


@variant("planned-from-the-rest", "operator", "plans each step from what is left", "COHR-030", "COHR-046", "COHR-047")
def _planned_from_the_rest() -> None:
    right = steps.sub_step

    def sub_step(components: Any, done: Any, left: Any) -> steps.SubStep:
        return _of_rest(right, components, done, left)

    replace(steps, "sub_step", sub_step)


def _of_rest(right: Any, components: Any, done: Any, left: Any) -> steps.SubStep:
    """The sub-step of a plan that is made again at the beginning of each step. Which step it is follows from the
    totals, as they were at the beginning of the update."""
    before = {component.key: 0 for component in components}
    while True:
        rest = [dataclasses.replace(c, replicas=c.replicas - before[c.key]) for c in components]
        count = steps.step_count(rest)
        if count == 0 or any(c.replicas == 0 for c in rest):
            return right(components, done, left)
        targets = {c.key: steps.target(c, count) for c in rest}
        if all(done[key] >= before[key] + target for key, target in targets.items()):
            before = {key: before[key] + targets[key] for key in before}
            continue
        within = {key: done[key] - before[key] for key in targets}
        if any(within[c.key] < c.minimum for c in rest):
            return steps.beginning(components, left)
        missing = {key: targets[key] - within[key] for key in targets}
        return steps.SubStep(steps.Phase.TAIL, {c.key: min(c.budget, missing[c.key], left[c.key]) for c in components})
