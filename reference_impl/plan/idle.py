"""Components that are scaled to zero. Such a component is idle, so it lacks nothing and no gang needs it (GREP-677).

Cliques and scaling groups have their own `replicas`, which the operator never changes; templates cannot have zero
replicas. A clique of a scaling group is idle only if its scaling group is idle.
"""

from __future__ import annotations

from reference_impl.api.models import Condition, PodClique, PodCliqueScalingGroup
from reference_impl.plan import conditions, labels

IDLE = "ScaledToZero"
"""Reason of the condition about the minimum of an idle object."""
WAKING = "WakingFromZero"
"""Reason of the same condition after an object was scaled up from zero, until it has its minimum for the first time.
Until then it has nothing to lose, so gang termination ignores it."""


def is_idle(part: PodClique | PodCliqueScalingGroup) -> bool:
    """Return whether a standalone clique or a scaling group is scaled to zero."""
    return part.spec.replicas == 0 and not part.metadata.label(labels.SCALING_GROUP)


def minimum(part: PodClique | PodCliqueScalingGroup) -> int:
    """Return the number of replicas that must be available now: `minAvailable`, or 0 for an idle object."""
    if is_idle(part):
        return 0
    return part.spec.minimum if isinstance(part, PodClique) else part.spec.min_available


def reason(part: PodClique | PodCliqueScalingGroup, condition: str) -> str:
    """Return the reason for a condition that reports a missing minimum, or an empty string if the cause is not that the
    object is or was idle."""
    if is_idle(part):
        return IDLE
    current: Condition | None = conditions.find(part.status.conditions if part.status else None, condition)
    return WAKING if current is not None and current.reason in (IDLE, WAKING) else ""
