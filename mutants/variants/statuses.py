"""Variants of statuses."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from kube.resource import Resource
from mutants.profiles.core_objects import reasons_of_its_own
from mutants.registry import variant
from mutants.replacement import Original, alter, around, on_result_of, replace
from reference_impl.api.models import (
    PODCLIQUES,
    PODCLIQUESETS,
    CliqueUpdateProgress,
    Condition,
    PodClique,
    PodCliqueStatus,
    PodSelection,
)
from reference_impl.api.pods import Pod
from reference_impl.control.cache import Cache
from reference_impl.control.last_errors import EVENT
from reference_impl.control.writer import Writer
from reference_impl.plan import labels, part_errors, statuses, topology, update_clique_pods
from reference_impl.plan.reconcile_error import ReconcileError
from reference_impl.plan.update_clique_pods import CliqueUpdateStep


@variant("operator", "writes the terms of selectors in another order", "CORE-013")
@around(statuses, "_selector")
def _selectors_reordered(original: Original, pcs: str, key: str, value: str) -> str:
    return ",".join(reversed(original(pcs, key, value).split(",")))


@variant("operator", "selects pods by what they belong to, not by who manages them", "CORE-013")
def _shorter_selectors() -> None:
    alter(statuses, "_selector", lambda selector, pcs, key, value: f"{labels.PART_OF}={pcs},{key}={value}")


@variant("operator", "publishes selectors for cliques of scaling groups, too", "CORE-013")
@on_result_of(statuses, "clique_status")
def _members_select(status: PodCliqueStatus, clique: PodClique, *_: Any) -> PodCliqueStatus:
    selector = f"{labels.MANAGED_SELECTOR},{labels.PODCLIQUE}={clique.metadata.name}"
    return msgspec.structs.replace(status, hpa_pod_selector=status.hpa_pod_selector or selector)


@variant("operator", "counts terminating pods as scheduled", *("CORE-018", "CORE-039"), exempt=("NODE-008",))
@on_result_of(statuses, "clique_status")
def _terminating_scheduled(status: PodCliqueStatus, clique: PodClique, members: list[Pod], *_: Any) -> PodCliqueStatus:
    terminating_count = sum(pod.terminating and pod.scheduled for pod in members)
    return msgspec.structs.replace(status, scheduled_replicas=status.scheduled_replicas + terminating_count)


@variant(
    "operator",
    "gives conditions about numbers of pods other reasons",
    "CORE-011",
    "CORE-012",
    "CORE-017",
    "CORE-021",
    "CORE-027",
    exempt=("CORE-037",),
)
def _other_reasons() -> None:
    reasons_of_its_own()


@variant(
    "operator",
    "words errors of cliques otherwise, in one entry of the set, and posts events about the cliques as well",
    *("CORE-040", "CORE-046", "CORE-047", "CORE-048"),
)
def _refusals_worded_otherwise() -> None:
    def of_set(problems: list[ReconcileError], *_: Any) -> list[ReconcileError]:
        reasons = ", ".join(f"“{problem.description}”" for problem in problems)
        return [ReconcileError("ERR_PODS_INCOMPLETE", f"Pods are missing ({reasons})")] if problems else []

    async def warn(self: Writer, resource: Resource, item: Any, reason: str, note: str) -> None:
        await original(self, resource, item, reason, note)
        if resource is PODCLIQUESETS and reason == EVENT:
            for clique in members.get(item.metadata.key, ()):
                await original(self, PODCLIQUES, clique, reason, note)

    def errors_of_parts(self: Cache, pcs: Any) -> list[ReconcileError]:
        members[pcs.metadata.key] = [clique for clique in self.cliques if clique.status and clique.status.last_errors]
        return find_errors(self, pcs)

    original, find_errors, members = Writer.warn, Cache.errors_of_parts, dict[Any, list[PodClique]]()
    alter(part_errors, "part_errors", of_set)
    replace(Cache, "errors_of_parts", errors_of_parts)
    replace(Writer, "warn", warn)


@variant("operator", "posts no event about a scaling group that has no replicas", "CORE-029")
@around(Writer, "warn")
async def _scaled_to_zero_in_silence(
    original: Original, self: Writer, resource: Any, item: Any, reason: str, note: str
) -> None:
    if reason != statuses.ALL_REPLICAS_LOST or item.spec.replicas:
        await original(self, resource, item, reason, note)


@variant("operator", "keeps the list of replaced pods of a clique after its update", "UPD-010")
@around(update_clique_pods, "_next_step")
def _completed_kept(
    original: Original, clique: PodClique, progress: CliqueUpdateProgress, members: Any, current: Any, now: str
) -> CliqueUpdateStep:
    step, selection = original(clique, progress, members, current, now), progress.ready_pods_selected_to_update
    if step.progress is None or step.progress.update_ended_at is None or selection is None:
        return step
    extended = PodSelection(current="", completed=[*(selection.completed or ()), selection.current])
    extended_progress = msgspec.structs.replace(step.progress, ready_pods_selected_to_update=extended)
    return dataclasses.replace(step, progress=extended_progress)


@variant("operator", "describes missing topology levels with one text, which names none", "RES-065", "RES-092")
@around(topology, "condition")
def _condition_in_other_words(original: Original, pcs: Any, levels: Any, now: str) -> Condition | None:
    reported = original(pcs, levels, now)
    return reported and msgspec.structs.replace(reported, message=f"Topology: {reported.reason}")
