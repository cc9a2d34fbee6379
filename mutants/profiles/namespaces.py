"""Mutants that look up objects by name without their namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kube.objects import Key
from mutants.registry import mutant
from mutants.replacement import Original, around
from reference_impl.api.models import PodCliqueSet, PodGang, PodGroup
from reference_impl.api.pods import Pod as Member
from reference_impl.control.cache import Cache
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.plan import desired, gangs, labels, topology
from reference_impl.plan.revisions import Revision
from reference_impl.scheduler import snapshot
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Pod


@mutant("operator", "takes a base gang for scheduled if one of its name in another namespace is", "GANG-025")
@around(Cache, "count_scheduled_pods")
def _base_gang_elsewhere(original: Original, self: Cache, namespace: str, clique: str) -> int:
    spaces = {member.metadata.namespace for member in self.cliques if member.metadata.name == clique}
    return max((original(self, space, clique) for space in {namespace, *spaces}), default=0)


@mutant("operator", "creates no Service where another namespace has one of its name", "GANG-025")
@around(SetReconciler, "_child_writes")
def _service_by_name_alone(
    original: Original,
    self: SetReconciler,
    pcs: PodCliqueSet,
    index: int,
    child: desired.Child,
    existing: Any,
    levels: topology.SetTopology,
    current: Mapping[str, Revision],
) -> Iterator[Any]:
    elsewhere = child.kind == "Service" and any(service.metadata.name == child.name for service in self._cache.services)
    if existing is not None or not elsewhere:
        yield from original(self, pcs, index, child, existing, levels, current)


@mutant("operator", "gives the references of a PodGang the namespace of another set of the same name", "GANG-025")
@around(gangs, "groups_with_references", memory=dict)
def _references_elsewhere(
    original: Original, first: dict[str, str], gang: PodGang, minimums: dict[str, int] | None, pods: Iterable[Member]
) -> list[PodGroup]:
    groups = original(gang, minimums, pods)
    namespace = first.setdefault(gang.metadata.label(labels.PART_OF), gang.metadata.namespace)
    for group in groups:
        for reference in group.pod_references:
            reference.namespace = namespace
    return groups


@mutant("operator", "deletes the PodCliques of all sets of a name when one of them is deleted", "GANG-025")
@around(SetReconciler, "reconcile")
async def _namesake_deleted(original: Original, self: SetReconciler, key: Key) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and pcs.metadata.deletion_timestamp is not None:
        for clique in self._cache.cliques:
            if clique.metadata.label(labels.PART_OF) == pcs.metadata.name:
                await self._writer.delete(self._cache.cliques, clique)
    return await original(self, key)


@mutant(
    "gang-scheduler", "counts the pods of PodGroups of the same name in another namespace", "SCHED-009", "SCHED-078"
)
@around(snapshot, "gang", memory=dict)
def _gangs_by_name_alone(
    original: Original,
    pods_of_gangs: dict[tuple[str, str], list[Pod]],
    item: PodGang,
    pods: Iterable[Pod],
    scheduler_name: str,
    assumed_nodes: dict[str, str],
    levels: tuple[str, ...] = (),
) -> Gang:
    gang_pods = pods_of_gangs[item.metadata.key] = list(pods)
    result = original(item, gang_pods, scheduler_name, assumed_nodes, levels)
    strangers = [
        pod
        for (namespace, _), foreign in pods_of_gangs.items()  # gang names contain epochs
        if namespace != item.metadata.namespace
        for pod in foreign
        if pod.spec.node_name
    ]
    for group in result.groups:
        group.members += [
            (pod, pod.spec.node_name) for pod in strangers if pod.metadata.label(labels.PODCLIQUE) == group.name
        ]
    return result
