"""The condition UpdateInProgress of sets, standalone cliques and scaling groups (spec GM-108 to GM-110)."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.api.coherent import RollingUpdate
from reference_impl.api.models import Condition, PodClique, PodCliqueScalingGroup
from reference_impl.plan import conditions, durations, update_progress

CONDITION = "UpdateInProgress"
_REASONS = {"True": "Progressing", "False": "NoActiveUpdate", "Unknown": "ProgressDeadlineExceeded"}


def component_condition(item: PodClique | PodCliqueScalingGroup, stuck: bool, now: str) -> Condition:
    """Return the condition of a clique or scaling group. `stuck` says whether its update has exceeded its
    progressDeadline."""
    if not update_progress.is_running(item):
        return _condition("False", "No update is in progress", now)
    if stuck:
        return _condition("Unknown", "The update has not moved within its progressDeadline", now)
    return _condition("True", "Update is in progress", now)


def set_condition(parts: Iterable[PodClique | PodCliqueScalingGroup], now: str, *, in_progress: bool) -> Condition:
    """Return the condition of a set. The condition shows whether an update is in progress, and whether the update of
    any part is stuck."""
    if not in_progress:
        return _condition("False", "No update is in progress", now)
    statuses = [_status(part) for part in parts]
    if stuck_count := statuses.count("Unknown"):
        return _condition(
            "Unknown", f"{stuck_count}/{len(statuses)} components have not moved within progressDeadline", now
        )
    return _condition("True", "Update is in progress", now)


def progress_deadline(rolling_update: RollingUpdate | None) -> float | None:
    """Return the seconds within which an update must make progress, or None if there is no limit (GM-110)."""
    if rolling_update is None or not rolling_update.progress_deadline:
        return None
    return durations.parse(rolling_update.progress_deadline) / 1e9


def _status(part: PodClique | PodCliqueScalingGroup) -> str:
    condition = conditions.find(part.status.conditions if part.status else None, CONDITION)
    return condition.status if condition is not None else ""


def _condition(status: str, message: str, now: str) -> Condition:
    return Condition(type=CONDITION, status=status, reason=_REASONS[status], message=message, last_transition_time=now)
