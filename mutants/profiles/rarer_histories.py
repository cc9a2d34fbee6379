"""Mutants that show only in rare histories: on some levels, at the second occurrence, or just before another event."""

from __future__ import annotations

import dataclasses
from typing import Any

from mutants.profiles.admission_served_kinds import spoil
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, on_result_of, replace
from reference_impl.api.models import (
    CliqueTemplate,
    ClusterTopologyBinding,
    Condition,
    PodClique,
    PodCliqueSet,
    ScalingGroupConfig,
)
from reference_impl.api.pods import Pod
from reference_impl.control.computedomain import DomainReconciler
from reference_impl.control.secondary_resources import SecondaryResources
from reference_impl.plan import (
    conditions,
    hashes,
    labels,
    mnnvl,
    pods,
    revisions,
    termination,
    topology,
    update_clique_pods,
    update_group_replicas,
    update_progress,
)
from reference_impl.plan.children import Manifest
from reference_impl.plan.desired import DesiredSet
from reference_impl.plan.hashing.window import STANDARD, CurrentHashes, Policy

# -- topology ----------------------------------------------------------------------------------------------------------


@mutant("operator", "uses one binding for all sets", "RES-060", "RES-061", "TOPO-050")
@around(topology, "set_topology", memory=list)
def _first_binding_for_all(
    original: Original,
    first_topologies: list[topology.SetTopology],
    pcs: PodCliqueSet,
    enabled: bool,
    binding: ClusterTopologyBinding | None,
) -> topology.SetTopology:
    result = original(pcs, enabled, binding)
    if result.levels and not first_topologies:
        first_topologies.append(result)
    return first_topologies[0] if result.levels else result


@mutant("operator", "ignores constraints of a set that has none at its top", "RES-060")
@around(topology, "set_topology")
def _lower_levels_need_the_set(
    original: Original, pcs: PodCliqueSet, enabled: bool, binding: ClusterTopologyBinding | None
) -> topology.SetTopology:
    result = original(pcs, enabled, binding)
    return result if pcs.spec.template.topology_constraint else dataclasses.replace(result, levels={})


@mutant("operator", "goes on with the levels of a binding that is deleted", "RES-064")
@around(topology, "set_topology", memory=dict)
def _lost_binding_remembered(
    original: Original,
    topologies: dict[str, topology.SetTopology],
    pcs: PodCliqueSet,
    enabled: bool,
    binding: ClusterTopologyBinding | None,
) -> topology.SetTopology:
    result: topology.SetTopology = original(pcs, enabled, binding)
    if result.binding_exists:
        topologies[result.binding] = result
    return topologies.get(result.binding, result)


@mutant("operator", "keeps the topology condition of an empty set", "RES-065")
@around(topology, "condition")
def _nothing_reported_without_replicas(
    original: Original, pcs: PodCliqueSet, levels: topology.SetTopology, now: str
) -> Condition | None:
    reported = conditions.find(pcs.status.conditions if pcs.status else None, topology.CONDITION)
    return reported if reported is not None and not pcs.spec.replicas else original(pcs, levels, now)


# -- multi-node NVLink -------------------------------------------------------------------------------------------------


@mutant("operator", "lets a deleted ComputeDomain go, and makes no new one", "RES-070")
def _domain_let_go() -> None:
    original = SecondaryResources._ensure_domains
    created: set[tuple[str, int, str]] = set()

    async def domains(self: SecondaryResources, target: DesiredSet) -> None:
        every = {(target.pcs.metadata.uid, domain.index, domain.group): domain for domain in target.domains}
        new_domains = tuple(domain for key, domain in every.items() if key not in created)
        await original(self, dataclasses.replace(target, domains=new_domains))
        created.update(every)

    replace(SecondaryResources, "_ensure_domains", domains)
    replace(DomainReconciler, "_is_needed", lambda self, key: False)


@mutant("operator", "links cliques with GPUs that have no annotation", "RES-114")
@around(mnnvl, "group_of")
def _linked_by_default(
    original: Original, pcs: PodCliqueSet, template: CliqueTemplate, config: ScalingGroupConfig | None
) -> str:
    levels = (template.annotations, config.annotations if config else None, pcs.metadata.annotations)
    if any(labels.MNNVL_GROUP in (level or {}) for level in levels):
        return original(pcs, template, config)
    return "default" if any(map(mnnvl._has_gpu, mnnvl._containers(template.spec.pod_spec))) else ""


# -- termination and updates -------------------------------------------------------------------------------------------


@mutant("operator", "calls a clique without any scheduled pod sound", "TERM-001")
@around(termination, "breached_condition")
def _emptied_cliques_spared(original: Original, scheduled: int, healthy: int, minimum: int, now: str) -> Condition:
    return original(scheduled, healthy, minimum, now) if scheduled else original(minimum, minimum, minimum, now)


@mutant("operator", "creates pods without the affinity of their template", "UPD-040")
@on_result_of(pods.PodBuilder, "pod")
def _affinity_dropped(manifest: Manifest, *_: Any) -> Manifest:
    return {**manifest, "spec": {key: value for key, value in manifest["spec"].items() if key != "affinity"}}


@mutant("operator", "ignores OnDelete on a set that had another strategy before", "UPD-038")
@around(update_progress, "is_on_delete", memory=set)
def _rolled_once_rolls_on(original: Original, rolled_uids: set[str], pcs: PodCliqueSet) -> bool:
    if not original(pcs):
        rolled_uids.add(pcs.metadata.uid)
    return pcs.metadata.uid not in rolled_uids


@mutant("operator", "gives pods from the fourth on the image of a first template", "UPD-009")
@on_result_of(pods.PodBuilder, "pod")
def _added_pods_misbuilt(manifest: Manifest, builder: pods.PodBuilder, index: int, gang: str) -> Manifest:
    if index < 3:
        return manifest
    containers = [
        {**container, "image": f"{container['image'].rpartition(':')[0]}:1"}
        for container in manifest["spec"]["containers"]
    ]
    return {**manifest, "spec": {**manifest["spec"], "containers": containers}}


@mutant("operator", "replaces new pods of a clique from the third on once more", "UPD-005")
@around(update_clique_pods, "is_outdated", memory=dict)
def _new_pods_rolled_again(original: Original, first: dict[str, str], pod: Pod, current: revisions.Revision) -> bool:
    if original(pod, current) or pods.index_of(pod) < 2:
        return original(pod, current)
    place = f"{pod.metadata.namespace}/{pod.spec.hostname}"
    return first.setdefault(place, pod.metadata.uid) == pod.metadata.uid


@mutant("operator", "treats fewer replicas as a change of the template", "UPD-037")
@around(hashes, "generation_hashes", memory=dict)
def _scale_in_is_a_change(
    original: Original, highest: dict[str, int], pcs: PodCliqueSet, policy: Policy = STANDARD
) -> CurrentHashes:
    uid, replicas = pcs.metadata.uid, pcs.spec.replicas
    highest[uid] = max(highest.get(uid, 0), replicas)
    current_hashes = original(pcs, policy)
    return current_hashes if replicas == highest[uid] else CurrentHashes(f"{current_hashes.written[:-1]}z", dict)


@mutant("operator", "treats pods that run and are not Ready as Ready ones", "UPD-014")
def _only_pending_pods_forced() -> None:
    replace(update_clique_pods, "unready_pods", lambda old: [pod for pod in old if pod.status.phase == "Pending"])


@mutant("operator", "counts replicas of a group whose pods run as available", "UPD-025")
@instead_of(update_group_replicas, "has_enough_ready_pods")
def _running_is_available(clique: PodClique, members: list[Pod]) -> bool:
    return sum(pod.status.phase == "Running" for pod in members if pod.active) >= update_progress.minimum(clique)


# -- what is served ----------------------------------------------------------------------------------------------------


@mutant("operator", "serves PodGangMaps with a status", "MAP-064")
def _map_with_status() -> None:
    operation = {"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}}
    spoil("podgangmaps.grove.io", operation)
