"""The migration of pods from the gangs of an operator of the other release line to new gangs (spec GM-80 to GM-85).
Pods keep their uids, specs, nodes, and all labels except those that name gangs."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.api.models import Condition, PodClique, PodCliqueSet, PodGang
from reference_impl.api.pods import Pod
from reference_impl.plan import children, conditions, kai, labels, names, ownership, template_drift
from reference_impl.plan.children import Manifest
from reference_impl.plan.lines import Line, Placement

CONDITION = "PodGangMigrationInProgress"


def is_running(pcs: PodCliqueSet) -> bool:
    """Return whether the gangs of a set are being migrated. Until that has finished, nothing else is done to the set's
    cliques and scaling groups (GM-83)."""
    return pcs.status is not None and conditions.is_true(pcs.status.conditions, CONDITION)


def condition(now: str) -> Condition:
    """Return the condition of a set whose gangs are being migrated (GM-80)."""
    return Condition(
        type=CONDITION,
        status="True",
        reason="LegacyPodGangsPendingMigration",
        message="Pods are being assigned to the PodGangs of another version of the contract",
        last_transition_time=now,
    )


def has_foreign_gangs(line: Line, pcs: PodCliqueSet, gangs: Iterable[PodGang]) -> bool:
    """Return whether any gang of a set has a name of the other release line."""
    name = pcs.metadata.name
    return any(
        not line.knows_gang(names.replica(name, ownership.replica_index(gang)), gang.metadata.name) for gang in gangs
    )


def clique_change(line: Line, pcs: PodCliqueSet, clique: PodClique, placement: Placement) -> Manifest:
    """Return the merge patch that assigns a clique to its gang, or an empty dict if there is nothing to do."""
    if not clique.metadata.label(labels.SCALING_GROUP):
        index = clique.metadata.label(labels.REPLICA_INDEX)
        return template_drift.label_patch(clique, line.standalone_labels(names.replica(pcs.metadata.name, index)))
    gang = gang_of(pcs, clique, placement)
    return {} if gang is None else template_drift.label_patch(clique, children.gang_labels(placement, line, gang))


def pod_change(line: Line, pcs: PodCliqueSet, clique: PodClique, pod: Pod, placement: Placement) -> Manifest:
    """Return the merge patch that assigns a pod of a clique to its gang, or an empty dict if there is nothing to do. It
    also updates the annotation that assigns a pod to a gang for KAI (GM-90)."""
    gang = gang_of(pcs, clique, placement)
    if gang is None or pod.terminating:
        return {}
    change = template_drift.label_patch(pod, children.gang_labels(placement, line, gang))
    if change and (pod.metadata.annotations or {}).get(kai.POD_GROUP):
        change["metadata"]["annotations"] = {kai.POD_GROUP: gang}
    return change


def gang_of(pcs: PodCliqueSet, clique: PodClique, placement: Placement) -> str | None:
    """Return the gang that holds the pods of a clique, or None if there is no such gang or more than one."""
    if config := children.clique_config(pcs, clique):
        return placement.gang_of(config.name, int(clique.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX)))
    template = children.clique_template(pcs, clique)
    gang_names = list(placement.shares(template.name)) if template is not None else []
    return gang_names[0] if len(gang_names) == 1 else None
