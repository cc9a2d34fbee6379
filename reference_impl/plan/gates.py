"""When a pod's scheduling gate may be removed (spec GS-01 to GS-05, OBJ-501 to OBJ-504)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reference_impl.api.models import PodClique, PodGang
from reference_impl.api.pods import Pod
from reference_impl.plan import gangs, labels


def removable(
    clique: PodClique,
    pods: Iterable[Pod],
    gang: PodGang | None,
    base: PodGang | None,
    scheduled: Callable[[str], int],
) -> list[Pod]:
    """The pods of a clique whose gate may be removed now.

    `gang` is the clique's gang; `base` is the base gang if that is a scaled gang (None: not created yet); `scheduled`
    returns the number of bound pods of a clique by name.
    """
    if gang is None or not gangs.initialized(gang):
        return []
    if clique.metadata.label(labels.BASE_PODGANG) and (base is None or not minimum_scheduled(base, scheduled)):
        return []
    group = next((g for g in gang.spec.podgroups if g.name == clique.metadata.name), None)
    referenced = {reference.name for reference in group.pod_references} if group else set()
    return [pod for pod in pods if pod.active and pod.gated_by(labels.GATE) and pod.metadata.name in referenced]


def minimum_scheduled(gang: PodGang, scheduled: Callable[[str], int]) -> bool:
    """Whether the minimum of every group of a gang is bound."""
    return bool(gang.spec.podgroups) and all(
        scheduled(group.name) >= group.min_replicas for group in gang.spec.podgroups
    )
