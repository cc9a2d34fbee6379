"""Gang termination. This file contains the whole rule (spec CHG-GT-20 to CHG-GT-35).

A replica of a set, or a single replica of a scaling group, is deleted and recreated when all of this is true:

1. A clique in it is *breached*: fewer than `minAvailable` of its pods are scheduled and healthy
   (`count_healthy_pods`). The clique's condition MinAvailableBreached reports the breach. The condition is Unknown
   during an update, and then nothing is terminated.
2. The breach has lasted without interruption for the set's `terminationDelay`, by default `DEFAULT_DELAY` (`delay`).
3. The clique has been scheduled since it was last scaled to zero (`idle.py`). A clique or scaling group that has never
   run is not terminated (`clique_breached_since`, `group_breached_since`).

The level of the termination depends on a single number, `count_sound_replicas`. While at least `minAvailable` replicas
of a scaling group are sound, the group terminates single replicas (`due_in_group`). With fewer sound replicas, the
group itself is breached, and the whole replica of the set is terminated with everything in it (`due_in_set`). A
breached standalone clique has the same effect.

Conditions are the only memory. `statuses` dates a condition that has never changed by the creation of its object, so
that rule 3 survives restarts. `control/termination.py` deletes the replicas that are due; the work queue waits for
replicas that are not due yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from reference_impl.api.models import Condition, PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.api.pods import Pod
from reference_impl.plan import conditions, durations, idle, labels, names, timestamps
from reference_impl.plan.children import CliqueOf

DEFAULT_DELAY = "4h0m0s"
"""The `terminationDelay` of a set without one (CHG-GT-20), in Go's notation."""

SCHEDULED = "PodCliqueScheduled"
BREACHED = "MinAvailableBreached"
TERMINATING = "GangTerminationInProgress"
"""A condition of a scaling group, from the termination of its set's replica until the group has recovered
(CHG-GT-26)."""
REASON = "GangTerminationActive"
TERMINATED = "PodCliqueSetReplicaDeleteSuccessful"
"""Reason of the event about a terminated replica of a set (CHG-EV-08)."""


@dataclass
class DueTerminations:
    """The replicas that must be terminated now, and the number of seconds until the next replica is due, or None if no
    delay is running."""

    causes: dict[int, set[str]] = field(default_factory=dict)
    """The uids of the breached objects, by replica index."""
    wait: float | None = None

    def note(self, index: int, uid: str, seconds: float) -> None:
        """Record a breached object whose delay ends in `seconds`."""
        if seconds <= 0:
            self.causes.setdefault(index, set()).add(uid)
        elif self.wait is None or seconds < self.wait:
            self.wait = seconds


def delay(pcs: PodCliqueSet) -> float:
    """Return the termination delay of a set in seconds (CHG-GT-20)."""
    try:
        nanoseconds = durations.parse(pcs.spec.template.termination_delay or "")
    except ValueError:
        nanoseconds = 0
    return (nanoseconds if nanoseconds > 0 else durations.parse(DEFAULT_DELAY)) / 1e9


def count_healthy_pods(pods: Sequence[Pod]) -> int:
    """Return the number of pods that are scheduled and neither failing, stalled nor lost. Pods that are still starting
    are healthy."""
    scheduled = [pod for pod in pods if pod.scheduled]
    return sum(not (_is_failing(pod) or _is_stalled(pod) or _is_lost(pod)) for pod in scheduled)


def _is_failing(pod: Pod) -> bool:
    """Return whether a pod is not Ready and the last run of a container ended with an error (OBJ-854)."""
    statuses = [*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())]
    return not pod.ready and any(status.failed for status in statuses)


def _is_stalled(pod: Pod) -> bool:
    """Return whether a pod is not failing and a main container has started but is not ready (OBJ-855)."""
    if pod.ready or _is_failing(pod):
        return False
    return any(status.started and not status.ready for status in pod.status.container_statuses or ())


def _is_lost(pod: Pod) -> bool:
    """Return whether a pod is not Ready although all its containers are ready. In this case its node does not respond,
    and the node controller has marked the pod (CHG-DF21). A pod that waits for a readiness gate is not lost."""
    if pod.ready or _is_failing(pod) or _is_stalled(pod):
        return False
    ready = next((c for c in pod.status.conditions or () if c.type == "Ready"), None)
    if ready is None or ready.status != "False" or ready.reason == "ReadinessGatesNotReady":
        return False
    containers = pod.status.container_statuses or ()
    return bool(containers) and all(container.ready for container in containers)


def breached_condition(scheduled: int, healthy: int, minimum: int, now: str) -> Condition:
    """Return the condition MinAvailableBreached of a clique that is not being updated. It is True if fewer than
    `minimum` pods are scheduled, or if fewer than `minimum` pods are healthy."""
    if scheduled < minimum:
        status, reason = "True", "ScheduledReplicasBelowMinAvailable"
        message = f"Scheduled replicas ({scheduled}) below MinAvailable ({minimum})"
    elif healthy < minimum:
        status, reason = "True", "InsufficientReadyPods"
        message = f"Insufficient ready or starting pods. expected at least: {minimum}, found: {healthy}"
    else:
        status, reason = "False", "SufficientReadyPods"
        message = f"Either sufficient ready or starting pods found. expected at least: {minimum}, found: {healthy}"
    return Condition(type=BREACHED, status=status, reason=reason, message=message, last_transition_time=now)


def complete_replicas(group: PodCliqueScalingGroup, clique: CliqueOf) -> Iterator[list[PodClique]]:
    """Yield the cliques of each scaling group replica of which all cliques exist."""
    for j in range(group.spec.replicas):
        members = [
            member
            for name in group.spec.clique_names
            if (member := clique(names.member_clique(group.metadata.name, j, name))) is not None
            and member.metadata.deletion_timestamp is None
        ]
        if len(members) == len(group.spec.clique_names):
            yield members


def count_sound_replicas(group: PodCliqueScalingGroup, clique: CliqueOf) -> int:
    """Return the number of scaling group replicas that are complete and not breached (OBJ-771). A clique without the
    condition MinAvailableBreached counts as breached (OBJ-773)."""

    def sound(member: PodClique) -> bool:
        breached = conditions.find(member.status.conditions if member.status else None, BREACHED)
        return breached is not None and breached.status != "True"

    return sum(all(map(sound, members)) for members in complete_replicas(group, clique))


def due_in_group(pcs: PodCliqueSet, group: PodCliqueScalingGroup, clique: CliqueOf, now: float) -> DueTerminations:
    """Return the replicas that a scaling group terminates itself (CHG-GT-21). Return no replicas while the group is
    being updated, or if it has too few sound replicas, because the set's replica is terminated in that case
    (CHG-DF05)."""
    due_terminations = DueTerminations()
    if is_updating(group) or count_sound_replicas(group, clique) < group.spec.min_available:
        return due_terminations
    allowed = delay(pcs)
    for index, member in members(group, clique):
        breached_at = clique_breached_since(member)
        if breached_at is not None:
            due_terminations.note(index, member.metadata.uid, breached_at + allowed - now)
    return due_terminations


def due_in_set(
    pcs: PodCliqueSet, cliques: Iterable[PodClique], groups: Iterable[PodCliqueScalingGroup], now: float
) -> DueTerminations:
    """Return the replicas of a set that must be terminated (CHG-GT-23). `cliques` holds the standalone cliques."""
    due_terminations = DueTerminations()
    allowed = delay(pcs)
    causes = [(index_of(clique), clique.metadata.uid, clique_breached_since(clique)) for clique in cliques]
    causes += [(index_of(group), group.metadata.uid, group_breached_since(group)) for group in groups]
    for index, uid, breached_at in causes:
        if breached_at is not None and 0 <= index < pcs.spec.replicas:
            due_terminations.note(index, uid, breached_at + allowed - now)
    return due_terminations


def clique_breached_since(clique: PodClique) -> float | None:
    """Return since when a clique has been breached, or None if it is not breached or was never scheduled
    (CHG-GT-30)."""
    current = clique.status.conditions if clique.status else None
    if clique.metadata.deletion_timestamp is not None or not conditions.is_true(current, BREACHED):
        return None
    scheduled = conditions.find(current, SCHEDULED)
    if scheduled is None or scheduled.reason == idle.WAKING:
        return None
    if scheduled.status != "True" and not _has_changed(clique.metadata.creation_timestamp, scheduled):
        return None
    return _breached_at(current)


def group_breached_since(group: PodCliqueScalingGroup) -> float | None:
    """Return since when a scaling group has been breached, or None if it is not breached, was never sound, or has
    already been terminated because of this breach (CHG-GT-26)."""
    current = group.status.conditions if group.status else None
    if group.metadata.deletion_timestamp is not None or not conditions.is_true(current, BREACHED):
        return None
    breached = conditions.find(current, BREACHED)
    if (
        breached is None
        or breached.reason == idle.WAKING
        or not _has_changed(group.metadata.creation_timestamp, breached)
    ):
        return None
    return None if conditions.is_true(current, TERMINATING) else _breached_at(current)


def is_updating(group: PodCliqueScalingGroup) -> bool:
    """Return whether an update of the scaling group is in progress."""
    progress = group.status.update_progress if group.status else None
    return progress is not None and progress.update_ended_at is None


def members(group: PodCliqueScalingGroup, clique: CliqueOf) -> Iterable[tuple[int, PodClique]]:
    """Yield the existing cliques of a scaling group, each with the index of its replica."""
    for index in range(group.spec.replicas):
        for name in group.spec.clique_names:
            member = clique(names.member_clique(group.metadata.name, index, name))
            if member is not None:
                yield index, member


def index_of(item: PodClique | PodCliqueScalingGroup) -> int:
    """Return the index of the set's replica that an object belongs to, or -1 if its label is missing."""
    text = item.metadata.label(labels.REPLICA_INDEX)
    return int(text) if text.isdigit() else -1


def terminating_condition(index: int, now: str) -> Condition:
    """Return the condition of a scaling group from its termination until it has recovered (CHG-GT-26)."""
    message = (
        f"Gang termination fired at PCS-replica scope for PCS replica {index}; this PCSG's PodCliques were deleted as "
        "part of the recycle"
    )
    return Condition(type=TERMINATING, status="True", reason=REASON, message=message, last_transition_time=now)


def _has_changed(created: str | None, condition: Condition) -> bool:
    """Return whether a condition has ever changed."""
    created_at, changed_at = timestamps.seconds(created), timestamps.seconds(condition.last_transition_time)
    return created_at is not None and changed_at is not None and changed_at > created_at


def _breached_at(current: list[Condition] | None) -> float | None:
    breached = conditions.find(current, BREACHED)
    return timestamps.seconds(breached.last_transition_time) if breached is not None else None
