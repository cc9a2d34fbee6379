"""Automatic multi-node NVLink: which cliques share a ComputeDomain, and the resource claims of their pods (OBJ-840 to
OBJ-847)."""

from __future__ import annotations

from typing import Any

from reference_impl.api import kubernetes
from reference_impl.api.models import CliqueTemplate, PodCliqueSet, ScalingGroupConfig
from reference_impl.plan import labels, names

Manifest = dict[str, Any]
GPU = "nvidia.com/gpu"
CLAIM = "mnnvl-claim"
NONE = "none"


def group_of(pcs: PodCliqueSet, template: CliqueTemplate, config: ScalingGroupConfig | None) -> str:
    """Return the MNNVL group of a clique, from the nearest level that names one, where `none` counts as a name. Return
    an empty string for a clique without a group or without GPUs."""
    levels = (template.annotations, config.annotations if config else None, pcs.metadata.annotations)
    group = next((level[labels.MNNVL_GROUP] for level in levels if level and labels.MNNVL_GROUP in level), NONE)
    return "" if group == NONE or not any(map(_has_gpu, _containers(template.spec.pod_spec))) else group


def groups(pcs: PodCliqueSet) -> list[str]:
    """Return the MNNVL groups of a set's cliques."""
    configs = pcs.spec.template.pod_clique_scaling_groups or ()
    config_of = {name: config for config in configs for name in config.clique_names}
    group_names = {group_of(pcs, template, config_of.get(template.name)) for template in pcs.spec.template.cliques}
    return sorted(group_names - {""})


def former_domains(pcs: PodCliqueSet) -> list[str]:
    """Return the names of ComputeDomains from the time before there were MNNVL groups. Pods may still use these
    domains, so each domain is kept as long as its replica exists (OBJ-848)."""
    return [f"{pcs.metadata.name}-{index}" for index in range(pcs.spec.replicas)]


def compute_domain(pcs: PodCliqueSet, index: int, group: str, owner: Manifest) -> Manifest:
    """Return the manifest of the ComputeDomain of an MNNVL group in a replica (OBJ-220)."""
    name = names.compute_domain(pcs.metadata.name, index, group)
    domain_labels = {labels.REPLICA_INDEX: str(index), labels.MNNVL_GROUP: group}
    return {
        "apiVersion": kubernetes.COMPUTE_DOMAINS.api_version,
        "kind": "ComputeDomain",
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": {**labels.common_labels(pcs.metadata.name, "pcs-computedomain", name), **domain_labels},
            "ownerReferences": [owner],
            "finalizers": [labels.COMPUTE_DOMAIN_FINALIZER],
        },
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}},
    }


def with_group_channel(
    pod_spec: Manifest, pcs: PodCliqueSet, template: CliqueTemplate, config: ScalingGroupConfig | None, index: int
) -> Manifest:
    """Return the pod spec of a clique, with the channel of its MNNVL group if it has one."""
    group = group_of(pcs, template, config)
    return with_channel(pod_spec, names.compute_domain(pcs.metadata.name, index, group)) if group else pod_spec


def with_channel(pod_spec: Manifest, template_name: str) -> Manifest:
    """Return the pod spec with a claim on the domain's channel for each container with GPUs. A spec that already has
    the claim is returned unchanged."""
    claims = list(pod_spec.get("resourceClaims") or ())
    if any(claim.get("name") == CLAIM for claim in claims):
        return pod_spec

    def container(old: Manifest) -> Manifest:
        if not _has_gpu(old):
            return old
        resources = old["resources"]
        return {**old, "resources": {**resources, "claims": [*(resources.get("claims") or ()), {"name": CLAIM}]}}

    result = {**pod_spec, "resourceClaims": [*claims, {"name": CLAIM, "resourceClaimTemplateName": template_name}]}
    for container_field in ("initContainers", "containers"):
        if pod_spec.get(container_field):
            result[container_field] = [container(c) for c in pod_spec[container_field]]
    return result


def _containers(pod_spec: Manifest) -> list[Manifest]:
    return [*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ())]


def _has_gpu(container: Manifest) -> bool:
    resources: dict[str, Any] = container.get("resources") or {}
    amounts = [(resources.get(resource_field) or {}).get(GPU) for resource_field in ("limits", "requests")]
    return any(str(amount) not in ("None", "", "0") for amount in amounts)
