"""Mutants of the objects that scaling creates and deletes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kube.informer import Informer
from mutants.owners import owner_of
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace, replace_data
from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueScalingGroup, PodCliqueSet, ScalingGroupConfig
from reference_impl.api.pods import Pod
from reference_impl.control.cache import BY_OWNER
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.control.scalinggroup import GroupReconciler
from reference_impl.control.writer import Writer
from reference_impl.plan import children, desired, labels, members, pods, template_drift
from reference_impl.plan.lines import Line
from reference_impl.plan.pods import PodDifference, index_of


@mutant(
    "operator",
    "creates one replica of a set, whatever its replicas",
    "SCALE-001",
    blocks=tuple(f"SCALE-{number:03}" for number in (2, 3, 4, 5, 6, 7, 8, 9, 13, 14)),
)
@around(desired, "_desired_replica")
def _set_not_scaled(original: Original, pcs: Any, index: int, *rest: Any) -> desired.DesiredReplica:
    return original(pcs, index, *rest) if index == 0 else desired.DesiredReplica(index, ())


@mutant("operator", "gives later replicas of a set the sizes of the first one", "SCALE-002")
@around(children, "standalone_clique", memory=dict)
def _first_sizes_kept(
    original: Original,
    first: dict[str, int],
    pcs: PodCliqueSet,
    index: int,
    template: CliqueTemplate,
    line: Line,
    **options: Any,
) -> children.Manifest:
    manifest = original(pcs, index, template, line, **options)
    size = first.setdefault(pcs.metadata.uid + template.name, template.spec.replicas)
    return {**manifest, "spec": {**manifest["spec"], "replicas": size}}


@mutant("operator", "keeps the Services of removed replicas", "SCALE-003")
@around(SetReconciler, "_surplus_deletions")
def _services_kept(original: Original, self: SetReconciler, *rest: Any) -> Iterator[Any]:
    return (write for write in original(self, *rest) if write.args[0].resource.kind != "Service")


@mutant("operator", "keeps one replica of a set that is scaled to zero", "SCALE-004")
@around(SetReconciler, "_sync_children")
async def _last_replica_kept(original: Original, self: SetReconciler, pcs: PodCliqueSet) -> None:
    spec = msgspec.structs.replace(pcs.spec, replicas=max(1, pcs.spec.replicas))
    await original(self, msgspec.structs.replace(pcs, spec=spec))


@mutant("operator", "overrides live replicas with the template's", "SCALE-005", "SCALE-006")
def _template_overrides() -> None:
    def clique(template: CliqueTemplate, current: PodClique) -> children.Manifest:
        replicas = template.spec.replicas
        return {"spec": {"replicas": replicas}} if current.spec.replicas != replicas else {}

    def group(config: ScalingGroupConfig, current: PodCliqueScalingGroup) -> children.Manifest:
        return {"spec": {"replicas": config.replicas}} if current.spec.replicas != config.replicas else {}

    replace(template_drift, "clique_patch", clique)
    replace(template_drift, "group_patch", group)


@mutant("operator", "deletes the first replicas of a group that is scaled in", "SCALE-007")
def _first_replicas_go() -> None:
    highest, in_place, of_group = dict[str, int](), members.replicas_in_place, desired.desired_members

    def stay(group: PodCliqueScalingGroup, indices: Iterable[int]) -> list[int]:
        # The replicas in the reported status were requested before this process started.
        before = (group.status.replicas if group.status else None) or 0
        count = highest[group.metadata.uid] = max(before, group.spec.replicas, highest.get(group.metadata.uid, 0))
        return [index for index in indices if index >= count - group.spec.replicas]

    def last_in_place(placement: Any, config: str, indices: Any, present: Any, group: PodCliqueScalingGroup) -> Any:
        return in_place(placement, config, stay(group, indices), present, group)

    def of_last(pcs: Any, group: PodCliqueScalingGroup, config: Any, indices: Any, *rest: Any, **options: Any) -> Any:
        return of_group(pcs, group, config, stay(group, indices), *rest, **options)

    replace(members, "replicas_in_place", last_in_place)
    replace(desired, "desired_members", of_last)


@mutant("operator", "deletes as many replicas of a group as are surplus, whichever they are", "SCALE-008")
@around(Writer, "delete")
async def _replicas_counted(original: Original, self: Writer, informer: Informer[Any], item: Any) -> None:
    index = item.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX)
    if isinstance(item, PodClique) and index:
        owner = item.metadata.controller
        siblings = informer.indexed(BY_OWNER, owner.uid if owner else "")
        living = [clique for clique in siblings if clique.metadata.deletion_timestamp is None]
        if int(index) >= len({c.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX) for c in living}):
            return
    await original(self, informer, item)


@mutant("operator", "keeps the initial size of a clique in a group", "SCALE-009")
@around(CliqueReconciler, "_sync_pods", memory=dict)
async def _members_not_scaled(
    original: Original, first: dict[str, int], self: CliqueReconciler, place: CliqueContext
) -> None:
    clique = place.clique
    if clique.metadata.label(labels.SCALING_GROUP):
        size = first.setdefault(clique.metadata.uid, clique.spec.replicas)
        clique = msgspec.structs.replace(clique, spec=msgspec.structs.replace(clique.spec, replicas=size))
    await original(self, CliqueContext(place.pcs, clique, place.placement))


@mutant("operator", "deletes the pods with the highest indices", "SCALE-010", "SCALE-015")
def _highest_index_goes() -> None:
    replace(pods, "deletion_rank", lambda pod, target: (-index_of(pod),))


@mutant("operator", "deletes the oldest of equal pods", "SCALE-015")
@around(pods, "deletion_rank")
def _oldest_goes(original: Original, pod: Pod, target: str) -> tuple[float, ...]:
    *better, age, index = original(pod, target)
    return (*better, -age, index)


@mutant("operator", "ignores the template hash when it deletes surplus pods", "SCALE-010")
def _template_ignored_at_scale_in() -> None:
    original = pods.deletion_rank
    replace(pods, "deletion_rank", lambda pod, target: original(pod, pod.metadata.label(labels.TEMPLATE_HASH)))


@mutant("operator", "ignores the phase when it deletes surplus pods", "SCALE-015")
def _phase_ignored_at_scale_in() -> None:
    replace_data(pods, "_PHASES", {}, read_by=(pods, "deletion_rank"))


@mutant("operator", "counts terminating pods as surplus", "SCALE-011")
@around(pods, "difference")
def _terminating_is_surplus(
    original: Original, shares: Mapping[str, int], current_pods: list[Pod], *rest: Any
) -> PodDifference:
    going = Counter(pod.metadata.label(labels.PODGANG) for pod in current_pods if pod.terminating)
    reduced = {gang: max(0, count - going[gang]) for gang, count in shares.items()}
    first = original(shares, current_pods, *rest)
    return first if first.missing else original(reduced, current_pods, *rest)


@mutant("operator", "numbers new pods after the highest index", "SCALE-012")
@instead_of(pods, "free_indices")
def _holes_stay(active: list[Pod], count: int) -> list[int]:
    first_index = max((index_of(pod) for pod in active), default=-1) + 1
    return list(range(first_index, first_index + count))


@mutant("operator", "ignores scaling that happened before its start", "SCALE-013")
@around(GroupReconciler, "_sync_cliques", memory=dict)
async def _scaling_missed(
    original: Original,
    first: dict[str, int],
    self: GroupReconciler,
    pcs: Any,
    group: PodCliqueScalingGroup,
    placement: Any,
) -> None:
    first_generation = first.setdefault(group.metadata.uid, group.metadata.generation if group.status else 0)
    if group.metadata.generation != first_generation:
        await original(self, pcs, group, placement)


@mutant("operator", "recreates a pod of each clique that exists at its start", "SCALE-014")
@around(pods, "difference", memory=set)
def _recreates_pods_at_start(
    original: Original, seen_owners: set[str], shares: Mapping[str, int], current_pods: list[Pod], *rest: Any
) -> PodDifference:
    result = original(shares, current_pods, *rest)
    owner = owner_of(current_pods)
    if owner in seen_owners:
        return result
    seen_owners.add(owner)
    return PodDifference(result.surplus or [pod for pod in current_pods if pod.ready][:1], result.missing)
