"""Mutants of the start of an update, and of the strategy OnDelete."""

from __future__ import annotations

from typing import Any

import msgspec

from mutants.profiles.hashes import salted
from mutants.registry import mutant
from mutants.replacement import Original, around, replace
from reference_impl.api.models import (
    CliqueTemplate,
    PodClique,
    PodCliqueSet,
)
from reference_impl.api.pods import Pod
from reference_impl.plan import (
    hashes,
    labels,
    revisions,
    statuses,
    template_drift,
    update_clique_pods,
    update_progress,
)
from reference_impl.plan.hashing.schemes import Template
from reference_impl.plan.hashing.window import STANDARD, CurrentHashes, Policy

# -- pods --------------------------------------------------------------------------------------------------------------


@mutant("operator", "ignores the labels of a template", "UPD-058")
@around(hashes, "_template")
def _labels_are_no_change(original: Original, template: CliqueTemplate, priority_class: str | None) -> Template:
    return original(msgspec.structs.replace(template, labels=None), priority_class)


@mutant("operator", "treats another terminationDelay as a change of the template", "UPD-037")
@around(hashes, "generation_hashes")
def _delay_is_a_change(original: Original, pcs: PodCliqueSet, policy: Policy = STANDARD) -> CurrentHashes:
    return CurrentHashes(salted(original(pcs, policy).written, str(pcs.spec.template.termination_delay)), dict)


@mutant("operator", "updates as with RollingRecreate, whatever the strategy", "UPD-038")
def _on_delete_deletes() -> None:
    replace(update_progress, "is_on_delete", lambda pcs: False)


@mutant("operator", "writes a new template only to cliques of the first replica", "UPD-039")
@around(template_drift, "is_outdated")
def _first_replica_renewed(original: Original, clique: PodClique, current: revisions.Revision) -> bool:
    return clique.metadata.label(labels.REPLICA_INDEX) == "0" and original(clique, current)


@mutant("operator", "counts pods as updated only once all of a clique are", "UPD-041")
@around(statuses, "clique_status")
def _updated_all_or_none(original: Original, clique: PodClique, members: list[Pod], *rest: Any) -> Any:
    status = original(clique, members, *rest)
    return status if status.updated_replicas == status.replicas else msgspec.structs.replace(status, updated_replicas=0)


@mutant("operator", "counts a clique as updated once OnDelete has ended its update", "UPD-059")
@around(statuses, "clique_status")
def _updated_with_the_end(original: Original, clique: PodClique, members: list[Pod], *rest: Any) -> Any:
    status = original(clique, members, *rest)
    progress = status.update_progress
    if progress is not None and progress.update_ended_at is not None:
        status.current_pod_template_hash = progress.pod_template_hash
        status.current_pod_clique_set_generation_hash = progress.pod_clique_set_generation_hash
    return status


@mutant("operator", "treats another strategy as a change of the template", "UPD-037", "UPD-062")
def _switch_rolls() -> None:
    original = revisions.set_revision
    replace(
        revisions,
        "set_revision",
        lambda pcs, policy: revisions._exact_revision(
            f"{original(pcs, policy).hash}{update_progress.is_on_delete(pcs)}"
        ),
    )


@mutant("operator", "replaces outdated pods only where the last change is theirs", "UPD-042")
def _outdated_pods_spared() -> None:
    original, outdated = update_clique_pods.step, update_clique_pods.is_outdated
    ended_updates: set[tuple[str, str]] = set()
    spared = [False]

    def step(pcs: PodCliqueSet, clique: PodClique, *rest: Any) -> update_clique_pods.CliqueUpdateStep:
        progress = clique.status.update_progress if clique.status else None
        if progress is not None and progress.update_ended_at is not None:
            ended_updates.add((clique.metadata.uid, progress.pod_template_hash))
        spared[0] = (clique.metadata.uid, clique.metadata.label(labels.TEMPLATE_HASH)) in ended_updates
        return original(pcs, clique, *rest)

    replace(update_clique_pods, "step", step)
    replace(update_clique_pods, "is_outdated", lambda pod, current: not spared[0] and outdated(pod, current))


@mutant("operator", "keeps cliques of groups at the generation of OnDelete", "UPD-043")
@around(statuses, "clique_status")
def _members_stay_behind(original: Original, clique: PodClique, members: list[Pod], *rest: Any) -> Any:
    status = original(clique, members, *rest)
    if clique.metadata.label(labels.SCALING_GROUP) and status.update_progress is not None:
        status.current_pod_clique_set_generation_hash = status.update_progress.pod_clique_set_generation_hash
    return status
