"""When a pod's scheduling gate may go (spec GS-01 to GS-05, OBJ-501 to OBJ-504 done right)."""

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
    """The pods of a clique whose gate may go now.

    `gang` is the clique's gang, `base` the base gang where the clique is in a scaled one (None: not there yet),
    `scheduled` counts the bound pods of a clique by its name.
    """
    if gang is None or not gangs.initialized(gang):
        return []
    if clique.metadata.label(labels.BASE_PODGANG) and (base is None or not minimum_scheduled(base, scheduled)):
        return []
    group = next((g for g in gang.spec.podgroups if g.name == clique.metadata.name), None)
    referenced = {reference.name for reference in group.pod_references} if group else set()
    return [pod for pod in pods if pod.active and pod.gated_by(labels.GATE) and pod.metadata.name in referenced]


def minimum_scheduled(gang: PodGang, scheduled: Callable[[str], int]) -> bool:
    """Whether every group of a gang has its minimum of pods bound."""
    return bool(gang.spec.podgroups) and all(
        scheduled(group.name) >= group.min_replicas for group in gang.spec.podgroups
    )
