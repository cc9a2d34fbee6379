"""The state of a gang: the minimums of its groups, whether it has been placed, and whether it has lost pods since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reference_impl.api.models import PodGang
from reference_impl.api.pods import Pod
from reference_impl.plan import gangs, labels
from reference_impl.plan.workload_api.mode import Extras, Mode, Replacements


def minimums(
    gang: PodGang, existing_minimums: Mapping[str, int], template_minimums: Mapping[str, int]
) -> dict[str, int]:
    """Return the minimum of each clique's group, at least 1. A minimum that was released to 0 keeps its last positive
    value (WL-H11, WL-HD2). `existing_minimums` holds the minimums of existing objects, and
    `template_minimums` the minimums of clique templates."""
    return {
        group.name: group.min_replicas
        or max(1, existing_minimums.get(group.name) or template_minimums.get(group.name) or 1)
        for group in gang.spec.podgroups
    }


@dataclass(frozen=True)
class Standing:
    """The state of a gang on which its objects and pods depend."""

    has_started: bool
    """Whether the minimum has been bound and at least one pod of the gang is still bound. A gang that has lost all its
    pods starts over and is placed as a whole again."""
    is_broken: bool
    """Whether the gang has started and a group is below its minimum."""


def standing(gang: PodGang, minimums_by_clique: Mapping[str, int], pods: Iterable[Pod]) -> Standing:
    """Return the state of a gang with these minimums and pods. Whether it has ever been placed is read from its status,
    which the operator writes (WL-H21)."""
    bound = dict.fromkeys(minimums_by_clique, 0)
    for clique, clique_pods in gangs.pods_by_clique(pods, gang.metadata.name).items():
        if clique in bound:
            bound[clique] = sum(pod.scheduled and pod.active for pod in clique_pods)
    has_minimum = bool(bound) and all(bound[clique] >= count for clique, count in minimums_by_clique.items())
    placed_once = gang.status is not None and gang.status.last_scheduled is not None
    has_started = has_minimum or (placed_once and any(bound.values()))
    return Standing(has_started, has_started and not has_minimum)


def required_groups(state: Standing, mode: Mode) -> int | None:
    """Return the number of required children of each composite, or None if all children are required. A gang that has
    started and lost pods requires only one child. If it required all, a replacement would wait until the sibling groups
    have their minimum again (WL37-B30, WL37-B41, GS-41)."""
    return 1 if state.is_broken and mode.replacements is Replacements.ALONE else None


def max_pods(state: Standing, minimum: int, pods: Iterable[Pod], mode: Mode) -> int | None:
    """Return the number of pods of a clique that a gang may have now, or None if there is no limit. Before the minimum
    is bound, pods above it would take capacity from sibling groups (WL37-M06, WL37-M11). Bound pods are never
    removed."""
    if mode.extras is Extras.INSIDE or state.has_started:
        return None
    return max(minimum, sum(pod.scheduled and pod.active for pod in pods))


def min_counts(
    gang: PodGang, minimums_by_clique: Mapping[str, int], groups: Mapping[str, str], pods: Iterable[Pod]
) -> dict[str, int]:
    """Return the `minCount` of each clique's PodGroup: the clique's minimum less the pods that are bound outside the
    PodGroup, such as pods that existed before the back-end or before the current shape of the gang (WL-H19)."""
    outside = dict.fromkeys(minimums_by_clique, 0)
    for clique, clique_pods in gangs.pods_by_clique(pods, gang.metadata.name).items():
        if clique in outside:
            outside[clique] = sum(pod.scheduled and pod.active and pod.group != groups[clique] for pod in clique_pods)
    return {clique: max(1, count - outside[clique]) for clique, count in minimums_by_clique.items()}


def stale_pods(pods: Iterable[Pod], group: str) -> list[Pod]:
    """Return the pods to recreate, since the group that they refer to cannot be changed (WL37-V18). These are the pods
    that wait at Grove's gate without this group, and the pods that wait in another group. Bound pods stay, regardless
    of their group (WL-H19)."""
    return [
        pod
        for pod in pods
        if pod.active and not pod.scheduled and pod.group != group and (pod.group or pod.gated_by(labels.GATE))
    ]
