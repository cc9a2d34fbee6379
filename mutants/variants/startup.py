"""Variants of the start-up order."""

from __future__ import annotations

from typing import Any

from mutants.profiles import startup
from mutants.registry import variant
from mutants.replacement import on_result_of
from reference_impl.control.podclique import CliqueContext
from reference_impl.plan import children
from reference_impl.plan.children import Manifest


@variant(
    "operator",
    "leaves startsAfter of PodCliques empty, and lets their pods wait all the same",
    "START-001",
    "START-002",
    "START-003",
    "START-004",
    "START-005",
    exempt=("START-015",),
)
@on_result_of(children, "_clique_manifest")
def _parents_not_listed(clique: Manifest, *_: Any) -> Manifest:
    return {**clique, "spec": {key: value for key, value in clique["spec"].items() if key != "startsAfter"}}


@variant(
    "operator",
    "lets pods start without waiting that join a clique which has Ready pods",
    "START-013",
    "INV-006",
    exempt=("START-014",),
)
@on_result_of(CliqueContext, "awaited_cliques")
def _replacements_start_at_once(result: dict[str, int], place: CliqueContext, gang: str) -> dict[str, int]:
    status = place.clique.status
    return {} if status is not None and status.ready_replicas else result


@variant(
    "operator",
    "waits for all pods of a parent",
    "START-011",
    exempt=("START-007", "START-016"),
    conflict="where pods above a minimum do not fit, nothing that waits for them would start",
)
def _whole_parents_awaited() -> None:
    startup.await_all_pods()


@variant(
    "operator",
    "waits for one pod of each parent",
    "START-011",
    "INV-006",
    exempt=("START-007", "START-009", "START-017", "INV-026"),
    conflict="another variant waits for all pods of a parent",
)
def _first_parent_pods_awaited() -> None:
    startup.await_first_pods()
