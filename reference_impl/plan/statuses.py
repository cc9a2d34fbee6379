"""Statuses of sets, cliques and scaling groups, computed from their children (spec OBJ-701 to OBJ-774)."""

from __future__ import annotations

import msgspec

from reference_impl.api.models import (
    Condition,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueStatus,
    ScalingGroupStatus,
    SetUpdateProgress,
)
from reference_impl.api.pods import Pod
from reference_impl.plan import conditions, idle, labels, names, revisions, termination, timestamps, update_progress
from reference_impl.plan.children import CliqueOf, GroupOf, group_configs, standalone_templates
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.termination import BREACHED, SCHEDULED, TERMINATING, complete_replicas, count_sound_replicas

ALL_REPLICAS_LOST = "AllScheduledReplicasLost"
"""Reason of the event about a clique or scaling group that has lost all its scheduled replicas (OBJ-801, OBJ-802)."""


def _selector(pcs: str, key: str, value: str) -> str:
    return f"{labels.MANAGED_SELECTOR},{labels.PART_OF}={pcs},{key}={value}"


def clique_status(
    clique: PodClique, pods: list[Pod], pcs: PodCliqueSet | None, now: str, policy: Policy = STANDARD
) -> PodCliqueStatus:
    """Return the status of a clique with these pods (OBJ-730 to OBJ-748). Terminating pods are not counted, so the
    numbers of ready and gated pods never exceed `replicas` (OBJ-731)."""
    old = clique.status or PodCliqueStatus()
    living_pods = [pod for pod in pods if not pod.terminating]
    scheduled = sum(pod.scheduled for pod in living_pods)
    ready = sum(pod.ready for pod in living_pods)
    current = update_progress.revision(pcs, clique, policy) if pcs is not None else None
    pod_revision = revisions.pod_revision(clique, current)
    updated = sum(pod_revision.has(pod.metadata.label(labels.TEMPLATE_HASH)) for pod in living_pods)
    minimum = idle.minimum(clique)
    healthy = termination.count_healthy_pods(living_pods)
    created = clique.metadata.creation_timestamp
    failure_reason = idle.reason(clique, SCHEDULED)
    scheduled_condition = _with_transition_time(
        old.conditions, _scheduled_condition(scheduled, clique.spec.minimum, now, failure_reason), created
    )
    breach = (
        _updating_condition(now)
        if update_progress.is_running(clique)
        else termination.breached_condition(scheduled, healthy, minimum, now)
    )
    status = msgspec.structs.replace(
        old,
        observed_generation=clique.metadata.generation,
        replicas=len(living_pods),
        ready_replicas=ready,
        scheduled_replicas=scheduled,
        schedule_gated_replicas=sum(pod.gated and not pod.scheduled for pod in living_pods),
        updated_replicas=updated,
        conditions=conditions.with_condition(conditions.with_condition(old.conditions, scheduled_condition), breach),
    )
    if not clique.metadata.label(labels.SCALING_GROUP):
        status.hpa_pod_selector = _selector(
            clique.metadata.label(labels.PART_OF), labels.PODCLIQUE, clique.metadata.name
        )
    if (
        pcs is not None
        and pod_revision is current
        and updated == len(living_pods)
        and not update_progress.is_running(clique)
    ):
        status.current_pod_template_hash = clique.metadata.label(labels.TEMPLATE_HASH)
        status.current_pod_clique_set_generation_hash = pcs.status.current_generation_hash if pcs.status else None
    return status


def _with_transition_time(old: list[Condition] | None, new: Condition, created: str | None) -> Condition:
    """Return a condition whose transition time shows whether it has ever changed. The time is the creation time of the
    object as long as the condition has its initial status, and a later time after any change. Gang termination needs
    this information (CHG-GT-30), and the condition is the only place where it survives a restart of the operator. A
    change to Unknown during an update of an object that has never run does not count."""
    previous = conditions.find(old, new.type)
    has_never_changed = previous is None or previous.last_transition_time == created
    is_initial = has_never_changed and new.status in (_INITIAL_STATUS[new.type], "Unknown")
    timestamp = (
        created or new.last_transition_time if is_initial else timestamps.later_than(created, new.last_transition_time)
    )
    return msgspec.structs.replace(new, last_transition_time=timestamp)


_INITIAL_STATUS = {SCHEDULED: "False", BREACHED: "True"}
"""The initial status of a clique's PodCliqueScheduled and of a scaling group's MinAvailableBreached."""


def _scheduled_condition(scheduled: int, minimum: int, now: str, failure_reason: str = "") -> Condition:
    """Return the condition PodCliqueScheduled. `failure_reason` is the reason if the condition is False."""
    is_sufficient = scheduled >= minimum
    return Condition(
        type=SCHEDULED,
        status="True" if is_sufficient else "False",
        reason="SufficientScheduledPods" if is_sufficient else failure_reason or "InsufficientScheduledPods",
        message=("Sufficient" if is_sufficient else "Insufficient")
        + f" scheduled pods{' found' if is_sufficient else ''}. expected at least: {minimum}, found: {scheduled}",
        last_transition_time=now,
    )


def _updating_condition(now: str) -> Condition:
    """Return the condition MinAvailableBreached=Unknown, which applies while an update is in progress (CHG-GT-01,
    CHG-GT-11)."""
    return Condition(
        type=BREACHED,
        status="Unknown",
        reason=update_progress.IN_PROGRESS,
        message="Update is in progress",
        last_transition_time=now,
    )


def _is_clique_available(clique: PodClique | None) -> bool:
    return (
        clique is not None
        and clique.metadata.deletion_timestamp is None
        and clique.status is not None
        and clique.status.ready_replicas >= idle.minimum(clique)
    )


def group_status(
    group: PodCliqueScalingGroup, pcs: PodCliqueSet | None, clique: CliqueOf, now: str
) -> ScalingGroupStatus:
    """Return the status of a scaling group (OBJ-760 to OBJ-772). `clique` finds a clique in its namespace by name."""
    old = group.status or ScalingGroupStatus()
    generation_hash = update_progress.generation(pcs) if pcs is not None else ""
    scheduled = available = updated = 0
    for members in complete_replicas(group, clique):
        statuses = [member.status.conditions if member.status else None for member in members]
        if all(conditions.is_true(s, SCHEDULED) for s in statuses):
            scheduled += 1
            if all(_is_clique_available(member) for member in members):
                available += 1
                updated += all(update_progress.is_updated(member, generation_hash) for member in members)
    sound = count_sound_replicas(group, clique)
    minimum = idle.minimum(group)
    is_sufficient, failure_reason = sound >= minimum, idle.reason(group, BREACHED)
    idle_reason = failure_reason if failure_reason == idle.IDLE or not is_sufficient else ""
    name = "AvailablePodCliqueScalingGroupReplicas"
    condition = Condition(
        type=BREACHED,
        status="False" if is_sufficient else "True",
        reason=idle_reason or ("Sufficient" if is_sufficient else "Insufficient") + name,
        message=f"PCSG replicas not in breach ({sound}) "
        f"{'meets' if is_sufficient else 'below'} MinAvailable ({minimum})",
        last_transition_time=now,
    )
    if update_progress.is_running(group):
        condition, is_sufficient = _updating_condition(now), False
    status = msgspec.structs.replace(
        old,
        observed_generation=group.metadata.generation,
        replicas=group.spec.replicas,
        scheduled_replicas=scheduled,
        available_replicas=available,
        updated_replicas=updated,
        selector=_selector(group.metadata.label(labels.PART_OF), labels.SCALING_GROUP, group.metadata.name),
        conditions=conditions.with_condition(
            conditions.without_condition(old.conditions, TERMINATING) if is_sufficient else old.conditions,
            _with_transition_time(old.conditions, condition, group.metadata.creation_timestamp),
        ),
    )
    expected = [clique(name) for name in expected_cliques(group)]
    at_generation = sum(update_progress.has_generation(member, generation_hash) for member in expected)
    if status.update_progress is not None:
        status.update_progress = msgspec.structs.replace(
            status.update_progress,
            updated_pod_cliques_count=sum(update_progress.is_updated(member, generation_hash) for member in expected),
            total_pod_cliques_count=len(expected),
        )
    if generation_hash and at_generation == len(expected) and not update_progress.is_running(group):
        status.current_pod_clique_set_generation_hash = generation_hash
    return status


def expected_cliques(group: PodCliqueScalingGroup) -> list[str]:
    """Return the names of the cliques that a scaling group should have."""
    replicas = range(group.spec.replicas)
    return [names.member_clique(group.metadata.name, j, name) for j in replicas for name in group.spec.clique_names]


def set_status(
    pcs: PodCliqueSet,
    generation_hash: str,
    clique: CliqueOf,
    group: GroupOf,
    observed: bool,
    progress: SetUpdateProgress | None = None,
) -> PodCliqueSetStatus:
    """Return the status of a set (OBJ-710 to OBJ-715). `observed` says whether the operator has acted on the current
    generation."""
    old = pcs.status or PodCliqueSetStatus()
    available = updated = 0
    templates, configs = standalone_templates(pcs), group_configs(pcs)
    for index in range(pcs.spec.replicas):
        cliques = [clique(names.clique(pcs.metadata.name, index, t.name)) for t in templates]
        groups = [group(names.scaling_group(pcs.metadata.name, index, config.name)) for config in configs]
        if not all(_is_clique_available(c) for c in cliques) or not all(_is_group_available(g) for g in groups):
            continue
        available += 1
        updated += all(update_progress.is_updated(c, generation_hash) for c in cliques) and all(
            g is not None
            and g.status is not None
            and g.status.current_pod_clique_set_generation_hash == generation_hash
            for g in groups
        )
    status = msgspec.structs.replace(
        old,
        replicas=pcs.spec.replicas,
        available_replicas=available,
        updated_replicas=updated,
        hpa_pod_selector=f"{labels.MANAGED_SELECTOR},{labels.PART_OF}={pcs.metadata.name}",
        current_generation_hash=generation_hash,
        update_progress=progress,
    )
    if observed:
        status.observed_generation = pcs.metadata.generation
    return status


def _is_group_available(group: PodCliqueScalingGroup | None) -> bool:
    return (
        group is not None
        and group.metadata.deletion_timestamp is None
        and group.status is not None
        and group.status.available_replicas >= idle.minimum(group)
    )
