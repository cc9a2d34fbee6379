"""Variants of rolling updates."""

from __future__ import annotations

from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.plan import update_clique_pods, update_group_replicas


@variant("selection-cleared", "operator", "clears the selected pod when an update restarts", "UPD-022", "UPD-023")
def _selection_cleared() -> None:
    replace(update_clique_pods, "carried", lambda clique, old, found: None)


@variant(
    "selected-replica-cleared", "operator", "clears the selected replica of a group when an update restarts", "UPD-028"
)
def _selected_replica_cleared() -> None:
    replace(update_group_replicas, "carried", lambda old, replicas: None)
