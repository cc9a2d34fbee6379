"""Mutants that mistake a component that is scaled to zero for a lost component."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import msgspec

from mutants.registry import mutant
from mutants.replacement import alter, instead_of
from reference_impl.api.models import PodClique, PodCliqueSet, PodGang, PodGroup
from reference_impl.plan import gangs, idle, names
from reference_impl.plan.children import standalone_templates
from reference_impl.plan.gangs import PlannedGang
from reference_impl.plan.lines import Placement


@mutant(
    "operator",
    "counts what is scaled to zero as breached, and terminates the replica",
    *("SCALE-016", "SCALE-017", "SCALE-018"),
)
@instead_of(idle, "minimum")
def _idle_taken_for_lost(part: Any) -> int:
    return int(part.spec.minimum if isinstance(part, PodClique) else part.spec.min_available)


@mutant("operator", "keeps the PodGroups of cliques that are scaled to zero", "SCALE-018")
def _idle_required() -> None:
    idle_groups(keep_minimum=True)


def idle_groups(*, keep_minimum: bool) -> None:
    """Give anchors a PodGroup for each standalone clique, even if the clique is scaled to zero. Such a PodGroup has
    minReplicas 0 or the minimum of the clique."""

    def planned(
        plans: list[PlannedGang], pcs: PodCliqueSet, index: int, placement: Placement, *_: Any
    ) -> list[PlannedGang]:
        placed_cliques = {clique for gang in placement.gangs.values() for clique in gang.cliques}
        idle_minimums = {
            names.clique(pcs.metadata.name, index, template.name): template.spec.minimum if keep_minimum else 0
            for template in standalone_templates(pcs)
            if template.name not in placed_cliques
        }
        return [
            dataclasses.replace(plan, minimums=idle_minimums | plan.minimums)
            if placement.gangs[plan.name].entry.anchor
            else plan
            for plan in plans
        ]

    alter(gangs, "planned_gangs", planned)


@mutant("operator", "requires one pod of a clique that wakes up from zero", "SCALE-019")
def _woken_without_minimum() -> None:
    woken: set[tuple[str, str]] = set()

    def filled(groups: list[PodGroup], gang: PodGang, minimums: Any, pods: Iterable[Any]) -> list[PodGroup]:
        group_names = {group.name for group in gang.spec.podgroups}
        woken.update((gang.metadata.uid, group.name) for group in groups if group.name not in group_names)
        return [
            msgspec.structs.replace(group, min_replicas=1) if (gang.metadata.uid, group.name) in woken else group
            for group in groups
        ]

    alter(gangs, "groups_with_references", filled)
