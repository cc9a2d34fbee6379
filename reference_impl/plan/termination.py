"""Gang termination: what has been below its minimum for too long, and so is made anew (spec CHG-GT-20 to CHG-GT-35 done
right).

Two levels look at one count. A scaling group makes single replicas anew as long as enough of its replicas are sound;
once they are not, its own condition says so and the whole replica of the set is made anew, with all that is in it.

What never ran is left alone, and nothing but conditions remembers whether it did: `statuses` dates them by the creation
of their object until they change for the first time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reference_impl.api.models import Condition, PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.plan import conditions, durations, labels, names, timestamps
from reference_impl.plan.statuses import BREACHED, SCHEDULED, TERMINATING, CliqueOf, sound_replicas

REASON = "GangTerminationActive"
TERMINATED = "PodCliqueSetReplicaDeleteSuccessful"
"""Reason of the event about a replica of a set that was terminated (CHG-EV-08)."""
DEFAULT_DELAY = 4 * 3600.0


@dataclass
class Due:
    """What is to be terminated now, by replica index, and in how many seconds the next comes to be (None: nothing
    counts down)."""

    causes: dict[int, set[str]] = field(default_factory=dict)
    """Replica index → uids of what gives cause."""
    wait: float | None = None

    def note(self, index: int, uid: str, left: float) -> None:
        if left <= 0:
            self.causes.setdefault(index, set()).add(uid)
        elif self.wait is None or left < self.wait:
            self.wait = left


def delay(pcs: PodCliqueSet) -> float:
    """Seconds that something may be below its minimum (CHG-GT-20)."""
    try:
        found = durations.parse(pcs.spec.template.termination_delay or "")
    except ValueError:
        return DEFAULT_DELAY
    return found / 1e9 if found > 0 else DEFAULT_DELAY


def due_in_group(pcs: PodCliqueSet, group: PodCliqueScalingGroup, clique: CliqueOf, now: float) -> Due:
    """The replicas of a scaling group that it terminates itself (CHG-GT-21). None while the group is breached by the
    count that its own condition goes by, which is the set's business (CHG-DF05 done right), or being updated."""
    due = Due()
    if updating(group) or sound_replicas(group, clique) < group.spec.min_available:
        return due
    allowed = delay(pcs)
    for index, member in members(group, clique):
        since = cause_of_clique(member)
        if since is not None:
            due.note(index, member.metadata.uid, since + allowed - now)
    return due


def due_in_set(
    pcs: PodCliqueSet, cliques: Iterable[PodClique], groups: Iterable[PodCliqueScalingGroup], now: float
) -> Due:
    """The replicas of a set that are terminated (CHG-GT-23). `cliques` are the standalone ones."""
    due = Due()
    allowed = delay(pcs)
    found = [(index_of(clique), clique.metadata.uid, cause_of_clique(clique)) for clique in cliques]
    found += [(index_of(group), group.metadata.uid, cause_of_group(group)) for group in groups]
    for index, uid, since in found:
        if since is not None and 0 <= index < pcs.spec.replicas:
            due.note(index, uid, since + allowed - now)
    return due


def cause_of_clique(clique: PodClique) -> float | None:
    """Since when a clique that was scheduled once is breached; None where it gives no cause (CHG-GT-30)."""
    found = clique.status.conditions if clique.status else None
    if clique.metadata.deletion_timestamp is not None or not conditions.is_true(found, BREACHED):
        return None
    scheduled = conditions.find(found, SCHEDULED)
    if scheduled is None or (
        scheduled.status != "True" and not _changed(clique.metadata.creation_timestamp, scheduled)
    ):
        return None
    return _since(found)


def cause_of_group(group: PodCliqueScalingGroup) -> float | None:
    """As `cause_of_clique`, for a scaling group that was sound once and has not been terminated for it (CHG-GT-26)."""
    found = group.status.conditions if group.status else None
    if group.metadata.deletion_timestamp is not None or not conditions.is_true(found, BREACHED):
        return None
    breached = conditions.find(found, BREACHED)
    if breached is None or not _changed(group.metadata.creation_timestamp, breached):
        return None
    return None if conditions.is_true(found, TERMINATING) else _since(found)


def updating(group: PodCliqueScalingGroup) -> bool:
    progress = group.status.update_progress if group.status else None
    return progress is not None and progress.update_ended_at is None


def members(group: PodCliqueScalingGroup, clique: CliqueOf) -> Iterable[tuple[int, PodClique]]:
    """The cliques of a group's replicas that exist, with the index of their replica."""
    for index in range(group.spec.replicas):
        for name in group.spec.clique_names:
            found = clique(names.member_clique(group.metadata.name, index, name))
            if found is not None:
                yield index, found


def index_of(item: PodClique | PodCliqueScalingGroup) -> int:
    """The index of the set's replica that something belongs to, -1 where no label says it."""
    text = item.metadata.label(labels.REPLICA_INDEX)
    return int(text) if text.isdigit() else -1


def flag(index: int, now: str) -> Condition:
    """What a group says from its termination to its recovery (CHG-GT-26)."""
    message = (
        f"Gang termination fired at PCS-replica scope for PCS replica {index}; this PCSG's PodCliques were deleted as "
        "part of the recycle"
    )
    return Condition(type=TERMINATING, status="True", reason=REASON, message=message, last_transition_time=now)


def _changed(created: str | None, condition: Condition) -> bool:
    """Whether a condition has ever been otherwise."""
    then, moved = timestamps.seconds(created), timestamps.seconds(condition.last_transition_time)
    return then is not None and moved is not None and moved > then


def _since(found: list[Condition] | None) -> float | None:
    breached = conditions.find(found, BREACHED)
    return timestamps.seconds(breached.last_transition_time) if breached is not None else None
