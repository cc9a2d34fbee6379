"""Mutants of the operator's basics: gates, base and scaled gangs, names, owners and variables."""

from __future__ import annotations

from typing import Any

import msgspec

from kube.objects import Key
from mutants.profiles.core_objects import never_adopt
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.models import PodGang
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.control.writer import Writer
from reference_impl.plan import children, gangs, gates, labels, lines, names, pods, statuses
from reference_impl.plan.layout import EntryGang, Layout, Role


@mutant("operator", "removes the gate of every pod as soon as its gang exists", "INV-001", "GANG-007")
@instead_of(gates, "pods_to_ungate")
def _gate_never_waits(pods: Any, *_: Any) -> list[Any]:
    return [pod for pod in pods if pod.active and pod.gated_by(labels.GATE)]


@mutant("operator", "ungates scaled gangs before their base gang is scheduled", "GANG-007", "INV-002", "INV-008")
def _base_gang_ignored() -> None:
    replace(gates, "has_been_scheduled", lambda gang, scheduled: True)


@mutant(
    "operator", "ungates replicas that were added to a scaling group before their base gang is scheduled", "GANG-007"
)
@around(CliqueReconciler, "_awaited_gangs")
def _added_gang_does_not_wait(
    original: Original, self: CliqueReconciler, place: CliqueContext, name: str
) -> list[PodGang | None]:
    added = place.placement.gangs[name].entry.role is Role.SCALE_OUT
    return [] if added else original(self, place, name)


@mutant("operator", "never removes the gate of pods of scaled gangs", "GANG-008", blocks=("START-010",))
def _gate_kept() -> None:
    replace(gates, "has_been_scheduled", lambda gang, scheduled: False)


@mutant("operator", "removes the gate of only minAvailable pods of a clique", "GANG-006")
@around(gates, "pods_to_ungate")
def _extras_stay_gated(original: Original, of_clique: Any, clique: str, gang: Any, *rest: Any) -> list[Any]:
    least = {group.name: group.min_replicas for group in gang.spec.podgroups} if gang is not None else {}
    open_pods = sum(not pod.gated for pod in of_clique)
    return original(of_clique, clique, gang, *rest)[: max(0, least.get(clique, 0) - open_pods)]


@mutant("operator", "creates pods without the scheduling gate", "GANG-005")
@around(pods.PodBuilder, "pod")
def _pods_without_gate(original: Original, self: pods.PodBuilder, index: int, gang: str) -> children.Manifest:
    manifest = original(self, index, gang)
    return {**manifest, "spec": {k: v for k, v in manifest["spec"].items() if k != "schedulingGates"}}


@mutant("operator", "names base gangs after what they are", "CORE-032")
@around(lines, "_name_by_index")
def _base_gang_misnamed(original: Original, replica: str, gangs: Layout, gang: EntryGang) -> str:
    return f"{replica}-base" if gang.entry.anchor else original(replica, gangs, gang)


@mutant("operator", "numbers scaled gangs by the group's replica index", "CORE-033")
def _scaled_gang_misnamed() -> None:
    replace(names, "scaled_gang", lambda group, replica_index, min_available: f"{group}-{replica_index}")


@mutant("operator", "names the Service of a replica after what it is", "CORE-001")
def _service_misnamed() -> None:
    replace(names, "service", lambda pcs, index: f"{pcs}-service-{index}")


@mutant("operator", "omits the part-of label of services", "CORE-002")
@around(children, "service")
def _part_of_missing(original: Original, pcs: Any, index: int) -> children.Manifest:
    manifest = original(pcs, index)
    del manifest["metadata"]["labels"][labels.PART_OF]
    return manifest


@mutant("operator", "creates services without an owner", "CORE-045", "LIFE-002")
def _service_orphaned() -> None:
    original = children.service

    def service(pcs: Any, index: int) -> children.Manifest:
        manifest = original(pcs, index)
        del manifest["metadata"]["ownerReferences"]
        return manifest

    replace(children, "service", service)
    never_adopt("Service")


@mutant("operator", "creates scaling groups without their finalizer", "CORE-005")
@around(children, "scaling_group")
def _group_without_finalizer(original: Original, *arguments: Any) -> children.Manifest:
    manifest = original(*arguments)
    del manifest["metadata"]["finalizers"]
    return manifest


@mutant("operator", "omits GROVE_PCLQ_NAME from pods", "CORE-008")
def _environment_incomplete() -> None:
    original = children.with_environment

    def with_environment(spec: children.Manifest, environment: list[children.Manifest]) -> children.Manifest:
        return original(spec, [variable for variable in environment if variable["name"] != "GROVE_PCLQ_NAME"])

    replace(pods, "with_environment", with_environment)


@mutant("operator", "appends its variables after those of the template", "CORE-009")
def _environment_last() -> None:
    original = children.with_environment

    def with_environment(spec: children.Manifest, environment: list[children.Manifest]) -> children.Manifest:
        result = original(spec, environment)
        added = len(environment)
        for container in result["containers"]:
            container["env"] = container["env"][added:] + container["env"][:added]
        return result

    replace(pods, "with_environment", with_environment)


@mutant("operator", "uses all replicas of a clique as the minimum of its pod group", "GANG-001")
@around(gangs, "planned_gangs")
def _minimum_is_replicas(original: Original, pcs: Any, *rest: Any) -> list[gangs.PlannedGang]:
    all_of = {t.name: t.spec.replicas for t in pcs.spec.template.cliques}
    return [
        gangs.PlannedGang(
            gang.name,
            {clique: next(n for name, n in all_of.items() if clique.endswith(f"-{name}")) for clique in gang.minimums},
        )
        for gang in original(pcs, *rest)
    ]


@mutant("operator", "lists all pods of a gang in its first group", "GANG-002")
@around(gangs, "groups_with_references")
def _references_of_others(original: Original, *arguments: Any) -> list[Any]:
    groups = original(*arguments)
    if not all(group.pod_references for group in groups):
        return groups
    every = [reference for group in groups for reference in group.pod_references]
    return [msgspec.structs.replace(groups[0], pod_references=every), *groups[1:]]


@mutant("operator", "never reports a gang as complete", "GANG-004")
def _never_initialized() -> None:
    replace(gangs, "is_complete", lambda *_: False)


@mutant("operator", "never reports a replica as available", "CORE-010")
@around(statuses, "set_status")
def _never_available(original: Original, *arguments: Any) -> Any:
    return msgspec.structs.replace(original(*arguments), available_replicas=0)


@mutant("operator", "reports every clique as having no ready pod", "CORE-011", "CORE-012")
@around(statuses, "clique_status")
def _ready_uncounted(original: Original, *arguments: Any) -> Any:
    return msgspec.structs.replace(original(*arguments), ready_replicas=0)


@mutant("operator", "never removes the finalizer of a deleted set", "LIFE-001")
@around(Writer, "remove_finalizer")
async def _finalizer_kept(original: Original, self: Writer, informer: Any, item: Any, finalizer: str) -> None:
    if finalizer != labels.SET_FINALIZER:
        await original(self, informer, item, finalizer)


@mutant("operator", "creates a service for a set that is being deleted", "LIFE-003")
@around(SetReconciler, "reconcile")
async def _works_on_after_deletion(original: Original, self: SetReconciler, key: Key) -> float | None:
    pcs = self._cache.sets.get(*key)
    if pcs is not None and pcs.metadata.deletion_timestamp is not None:
        await self._writer.create(self._cache.services, children.service(pcs, pcs.spec.replicas + 1))
    return await original(self, key)
