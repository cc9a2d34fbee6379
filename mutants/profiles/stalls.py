"""Mutants that stall. Only the requirements about the stalled step fail, and requirements about later steps are
blocked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.control.podclique import CliqueContext
from reference_impl.plan import update_clique_pods, update_group_replicas
from reference_impl.plan.coherent import budget
from reference_impl.plan.components import Component, Key


def _requirement_ids(area: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{area}-{number:03}" for number in numbers)


@mutant(
    "operator",
    "begins no sub-step of a coherent update",
    "COHR-036",
    "COHR-092",
    blocks=_requirement_ids("COHR", 30, 31, 33, 35, 38, 50, 51, 52, 53, 54, 60, 61, 62, 64, 66, 68, 71, 93, 104),
)
@instead_of(budget, "affordable_batch")
def _coherent_updates_stall(
    components: Sequence[Component], places: budget.Slots, counts: Mapping[Key, int], *, whole: bool
) -> budget.Batch:
    return {component.key: [] for component in components}


@mutant(
    "operator",
    "replaces no pod and no replica of a group in an update",
    "UPD-007",
    "UPD-014",
    "UPD-036",
    blocks=_requirement_ids("UPD", 9, 12, 15, 16, 17, 20, 46),
)
def _rolling_updates_stall() -> None:
    replace(update_clique_pods, "unready_pods", lambda old: [])
    replace(update_clique_pods, "oldest_pod", lambda ready: None)
    replace(update_group_replicas, "unavailable_replicas", lambda replicas: [])
    replace(update_group_replicas, "lowest_replica", lambda ready: None)


@mutant(
    "operator",
    "lets children wait for more pods than their parents have",
    "START-011",
    "START-012",
    blocks=_requirement_ids("START", 13, 14),
)
@around(CliqueContext, "awaited_cliques")
def _start_up_stalls(original: Original, self: CliqueContext, gang: str) -> dict[str, int]:
    return {parent: count + 100 for parent, count in original(self, gang).items()}
