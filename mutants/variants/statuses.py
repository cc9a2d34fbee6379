"""Variants of statuses."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from mutants.registry import variant
from mutants.replacement import replace
from reference_impl.api.models import CliqueUpdateProgress, Condition, PodClique, PodSelection
from reference_impl.plan import statuses, topology, update_clique_pods
from reference_impl.plan.update_clique_pods import Step


@variant("selectors-reordered", "operator", "writes the terms of selectors in another order", "CORE-013")
def _selectors_reordered() -> None:
    right = statuses._selector

    def selector(pcs: str, key: str, value: str) -> str:
        return ",".join(reversed(right(pcs, key, value).split(",")))

    replace(statuses, "_selector", selector)


@variant("completed-kept", "operator", "keeps the list of replaced pods of a clique after its update", "UPD-010")
def _completed_kept() -> None:
    right = update_clique_pods._advanced

    def advanced(clique: PodClique, progress: CliqueUpdateProgress, found: Any, current: Any, now: str) -> Step:
        step, selection = right(clique, progress, found, current, now), progress.ready_pods_selected_to_update
        if step.progress is None or step.progress.update_ended_at is None or selection is None:
            return step
        kept = PodSelection(current="", completed=[*(selection.completed or ()), selection.current])
        ended = msgspec.structs.replace(step.progress, ready_pods_selected_to_update=kept)
        return dataclasses.replace(step, progress=ended)

    replace(update_clique_pods, "_advanced", advanced)


@variant("condition-in-other-words", "operator", "describes missing topology levels with another text", "RES-065")
def _condition_in_other_words() -> None:
    right = topology.condition

    def condition(pcs: Any, found: Any, now: str) -> Condition | None:
        told = right(pcs, found, now)
        return told and msgspec.structs.replace(told, message=f"Topology: {told.reason}")

    replace(topology, "condition", condition)
