"""Variants of updates per component."""

from __future__ import annotations

from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.plan import update_clique_pods, update_group_replicas


@variant("budget-unused", "operator", "replaces one pod and one replica at a time", "UPD-047", "UPD-048")
def _budget_unused() -> None:
    replace(update_clique_pods, "further", lambda taken, clique, found, current, budget: [])
    replace(update_group_replicas, "further", lambda taken, replicas, budget: [])
