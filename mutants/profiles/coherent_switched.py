"""Mutants of sets whose update strategy is switched to or from Coherent."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from kube.workqueue import WorkQueue
from mutants.registry import mutant
from mutants.replacement import Original, around, on_result_of
from reference_impl.api.models import PodCliqueSet
from reference_impl.control.maps import MapWriter
from reference_impl.control.operator import Operator
from reference_impl.plan import gangs, names
from reference_impl.plan.children import standalone_templates
from reference_impl.plan.coherent import progress, update
from reference_impl.plan.coherent.planner import Step
from reference_impl.plan.components import Component
from reference_impl.plan.gangs import PlannedGang
from reference_impl.plan.layout import EntryGang, Layout, first_layout
from reference_impl.plan.observed import Observed


@mutant("operator", "leaves gangs alone when the strategy of their set changes", "COHR-110")
@around(Operator, "_trigger_turns")
def _joining_gangs_unheard(original: Original, self: Operator, old: PodCliqueSet, item: PodCliqueSet) -> None:
    gangs, self._gangs = self._gangs, WorkQueue()
    original(self, old, item)
    self._gangs = gangs


@mutant("operator", "moves Pods into the gang that they are in, after a switch to Coherent", "COHR-110")
@around(progress, "own_entries")
def _half_updated_gangs_joined(
    original: Original, layout: Layout, generation: str, components: Sequence[Component], observed: Observed
) -> Layout:
    return original(layout, generation, (), observed)


@mutant("operator", "asks for minAvailable Pods of a gang that holds fewer, after a switch from Coherent", "COHR-110")
@on_result_of(gangs, "_planned_gang")
def _parts_need_the_minimum(
    plan: PlannedGang, pcs: PodCliqueSet, index: int, name: str, gang: EntryGang, *_: Any, **__: Any
) -> Any:
    minimums = {names.clique(pcs.metadata.name, index, t.name): t.spec.minimum for t in standalone_templates(pcs)}
    required = {clique: minimum for clique, minimum in minimums.items() if clique in plan.minimums}
    return plan if gang.entry.depends_on else dataclasses.replace(plan, minimums=plan.minimums | required)


@mutant("operator", "gives sets that are switched to Coherent new gangs", "COHR-090", "COHR-091")
@around(MapWriter, "_renew_replica", memory=dict)
async def _joining_starts_over(
    original: Original, previous: dict[tuple[str, int], bool], self: MapWriter, pcs: PodCliqueSet, index: int
) -> Step | None:
    key, coherent = (pcs.metadata.uid, index), update.is_coherent(pcs)
    stored, joined = self._layouts.stored(pcs, index), coherent and previous.get(key) is False
    previous[key] = coherent
    if joined and stored is not None:
        components, generation = self._layouts.components(pcs, index), self._layouts.templates(pcs).generation
        await self._write(pcs, index, stored, first_layout(components, generation, self._epochs(pcs, index)))
        return None
    return await original(self, pcs, index)
