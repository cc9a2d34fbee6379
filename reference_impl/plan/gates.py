"""Removal of the scheduling gates of pods (spec GS-01 to GS-05, OBJ-501 to OBJ-504, GM-64 to GM-66)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reference_impl.api.models import PodGang
from reference_impl.api.pods import Pod
from reference_impl.plan import gangs, labels


def pods_to_ungate(
    pods: Iterable[Pod],
    clique: str,
    gang: PodGang | None,
    awaited: Iterable[PodGang | None],
    scheduled: Callable[[str], int],
) -> list[Pod]:
    """Return the pods of a clique in a gang whose gate may be removed now.

    `awaited` holds the gangs that must be scheduled first, with None for a gang that has not been created yet.
    `scheduled` returns the number of bound pods of a clique by name.
    """
    if gang is None or not gangs.is_initialized(gang):
        return []
    if not all(predecessor is not None and has_been_scheduled(predecessor, scheduled) for predecessor in awaited):
        return []
    group = next((g for g in gang.spec.podgroups if g.name == clique), None)
    referenced = {reference.name for reference in group.pod_references} if group else set()
    return [pod for pod in pods if pod.active and pod.gated_by(labels.GATE) and pod.metadata.name in referenced]


def has_been_scheduled(gang: PodGang, scheduled: Callable[[str], int]) -> bool:
    """Return whether a gang was scheduled at any time, or the minimum of each of its groups is bound."""
    if gangs.has_been_scheduled(gang):
        return True
    return bool(gang.spec.podgroups) and all(
        scheduled(group.name) >= group.min_replicas for group in gang.spec.podgroups
    )
