"""A component that is scaled to zero is idle: nothing is missing in it, and no gang needs it (GREP-677).

Cliques and scaling groups have their own replicas, which the operator never changes; a template cannot have zero. A
clique of a scaling group is idle with its group only.
"""

from __future__ import annotations

from reference_impl.api.models import Condition, PodClique, PodCliqueScalingGroup
from reference_impl.plan import conditions, labels

IDLE = "ScaledToZero"
"""Reason of the condition about the minimum of an idle object."""
WAKING = "WakingFromZero"
"""The same of an object that was idle, until it has its minimum for the first time since: before, it has nothing to
lose, so that gang termination passes over it."""


def is_idle(part: PodClique | PodCliqueScalingGroup) -> bool:
    """Whether a standalone clique or a scaling group is scaled to zero."""
    return part.spec.replicas == 0 and not part.metadata.label(labels.SCALING_GROUP)


def minimum(part: PodClique | PodCliqueScalingGroup) -> int:
    """The number of replicas that have to be available now: `minAvailable`, or none of an idle object."""
    if is_idle(part):
        return 0
    return part.spec.minimum if isinstance(part, PodClique) else part.spec.min_available


def reason(part: PodClique | PodCliqueScalingGroup, condition: str) -> str:
    """The reason of a condition that says that an object lacks its minimum, if this is so because it is or was idle;
    else empty."""
    if is_idle(part):
        return IDLE
    current: Condition | None = conditions.find(part.status.conditions if part.status else None, condition)
    return WAKING if current is not None and current.reason in (IDLE, WAKING) else ""
