"""Manifests of the objects that a PodCliqueSet and its scaling groups own: services, cliques, scaling groups (spec
OBJ-210 to OBJ-254)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kube.objects import ObjectMeta
from reference_impl.api import models
from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueScalingGroup, PodCliqueSet, ScalingGroupConfig
from reference_impl.api.pods import Service
from reference_impl.plan import labels, mnnvl, names, ownership, revisions, startup
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.lines import Line, Placement

Manifest = dict[str, Any]
CliqueOf = Callable[[str], PodClique | None]
"""Finds a clique by name."""
GroupOf = Callable[[str], PodCliqueScalingGroup | None]
"""Finds a scaling group by name."""


def owner_reference(api_version: str, kind: str, metadata: ObjectMeta) -> Manifest:
    """Return a controller reference that blocks the owner's removal in foreground deletion."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def set_reference(pcs: PodCliqueSet) -> Manifest:
    """Return the owner reference for objects that the set controls."""
    return owner_reference(models.PODCLIQUESETS.api_version, "PodCliqueSet", pcs.metadata)


def group_configs(pcs: PodCliqueSet) -> list[ScalingGroupConfig]:
    """Return the configurations of a set's scaling groups."""
    return pcs.spec.template.pod_clique_scaling_groups or []


def standalone_templates(pcs: PodCliqueSet) -> list[CliqueTemplate]:
    """Return the clique templates that belong to no scaling group, in template order."""
    grouped = {name for config in group_configs(pcs) for name in config.clique_names}
    return [template for template in pcs.spec.template.cliques if template.name not in grouped]


def find_template(pcs: PodCliqueSet, name: str) -> CliqueTemplate | None:
    """Return the clique template with exactly this name, or None if there is none. Matching a suffix would be wrong
    (OBJ-125)."""
    return next((t for t in pcs.spec.template.cliques if t.name == name), None)


def publish_not_ready(pcs: PodCliqueSet) -> bool:
    """Return whether the headless Services of a set publish pods that are not Ready (OBJ-240)."""
    config = pcs.spec.template.headless_service_config
    return config is not None and config.publish_not_ready_addresses


def service(pcs: PodCliqueSet, index: int) -> Manifest:
    """Return the headless Service of a replica (OBJ-240)."""
    name = names.service(pcs.metadata.name, index)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": {
                **labels.common_labels(pcs.metadata.name, "pcs-headless-service", name),
                labels.REPLICA_INDEX: str(index),
            },
            "ownerReferences": [set_reference(pcs)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {
                labels.MANAGED_BY: labels.MANAGER,
                labels.PART_OF: pcs.metadata.name,
                labels.REPLICA_INDEX: str(index),
            },
            "publishNotReadyAddresses": publish_not_ready(pcs),
        },
    }


def is_service_correct(pcs: PodCliqueSet, index: int, existing: Service) -> bool:
    """Return whether an existing Service is as desired. This is checked for every replica in every reconcile."""
    desired_labels = {
        labels.MANAGED_BY: labels.MANAGER,
        labels.PART_OF: pcs.metadata.name,
        labels.REPLICA_INDEX: str(index),
    }
    spec, tags = existing.spec, existing.metadata.labels or {}
    return (
        spec.publish_not_ready_addresses == publish_not_ready(pcs)
        and spec.selector == desired_labels
        and desired_labels.items() <= tags.items()
        and ownership.owns(pcs, existing)
    )


def scaling_group(pcs: PodCliqueSet, index: int, config: ScalingGroupConfig) -> Manifest:
    """Return the scaling group object of a replica (OBJ-213)."""
    name = names.scaling_group(pcs.metadata.name, index, config.name)
    metadata: Manifest = {
        "name": name,
        "namespace": pcs.metadata.namespace,
        "labels": {
            **labels.common_labels(pcs.metadata.name, "pcs-podcliquescalinggroup", name),
            labels.REPLICA_INDEX: str(index),
        },
        "ownerReferences": [set_reference(pcs)],
        "finalizers": [labels.SCALING_GROUP_FINALIZER],
    }
    annotations = dict(config.annotations or {})
    if group := (pcs.metadata.annotations or {}).get(labels.MNNVL_GROUP):
        annotations.setdefault(labels.MNNVL_GROUP, group)
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": models.SCALING_GROUPS.api_version,
        "kind": "PodCliqueScalingGroup",
        "metadata": metadata,
        "spec": {
            "replicas": config.replicas,
            "minAvailable": config.min_available,
            "cliqueNames": config.clique_names,
        },
    }


def _clique_manifest(
    pcs: PodCliqueSet,
    template: CliqueTemplate,
    name: str,
    component: str,
    extra_labels: dict[str, str],
    owner: Manifest,
    pod_spec: Manifest,
    parents: Iterable[str],
    policy: Policy,
) -> Manifest:
    clique_labels = {
        **labels.common_labels(pcs.metadata.name, component, name),
        **extra_labels,
        labels.TEMPLATE_HASH: revisions.template_revision(pcs, template, policy).hash,
    }
    metadata: Manifest = {
        "name": name,
        "namespace": pcs.metadata.namespace,
        "labels": {**(template.labels or {}), **clique_labels},
        "ownerReferences": [owner],
        "finalizers": [labels.CLIQUE_FINALIZER],
    }
    annotations = {k: v for k, v in (template.annotations or {}).items() if k != labels.TOPOLOGY_NAME}
    if annotations:
        metadata["annotations"] = annotations
    spec = models.to_json(template.spec)
    # The set's priority class applies to all pods (OBJ-256), and the hash includes it.
    priority = pcs.spec.template.priority_class_name
    spec["podSpec"] = {**pod_spec, "priorityClassName": priority} if priority else pod_spec
    spec["minAvailable"] = template.spec.minimum
    spec.pop("startsAfter", None)  # the template refers to templates, the object to objects (OBJ-602)
    if starts_after := list(parents):
        spec["startsAfter"] = starts_after
    return {
        "apiVersion": models.PODCLIQUES.api_version,
        "kind": "PodClique",
        "metadata": metadata,
        "spec": spec,
    }


def standalone_clique(
    pcs: PodCliqueSet,
    index: int,
    template: CliqueTemplate,
    line: Line,
    *,
    channels: bool = False,
    policy: Policy = STANDARD,
) -> Manifest:
    """Return a clique that belongs to no scaling group (OBJ-211). `channels` says whether ComputeDomains are enabled
    (OBJ-845)."""
    pod_spec = template.spec.pod_spec
    line_labels = _without_absent(line.standalone_labels(names.replica(pcs.metadata.name, index)))
    return _clique_manifest(
        pcs,
        template,
        names.clique(pcs.metadata.name, index, template.name),
        "pcs-podclique",
        {labels.REPLICA_INDEX: str(index), **line_labels},
        set_reference(pcs),
        mnnvl.with_group_channel(pod_spec, pcs, template, None, index) if channels else pod_spec,
        startup.awaited_cliques(pcs, template, index, startup.base_gang(pcs)),
        policy,
    )


def member_cliques(
    pcs: PodCliqueSet,
    group: PodCliqueScalingGroup,
    config: ScalingGroupConfig,
    indices: Iterable[int],
    placement: Placement,
    line: Line,
    *,
    channels: bool = False,
    policy: Policy = STANDARD,
) -> Iterator[Manifest]:
    """Yield the cliques of scaling group replicas (OBJ-212, OBJ-253), except for replicas that no gang holds yet."""
    index = int(group.metadata.label(labels.REPLICA_INDEX))
    templates = [t for name in config.clique_names if (t := find_template(pcs, name)) is not None]
    owner = owner_reference(models.SCALING_GROUPS.api_version, "PodCliqueScalingGroup", group.metadata)
    pods = sum(t.spec.replicas for t in templates)
    for j in indices:
        if (name_of_gang := placement.gang_of(config.name, j)) is None:
            continue
        gang = placement.gangs[name_of_gang]
        extra_labels = {
            labels.REPLICA_INDEX: str(index),
            labels.SCALING_GROUP: group.metadata.name,
            labels.SCALING_GROUP_REPLICA_INDEX: str(j),
            **_without_absent(gang_labels(placement, line, name_of_gang)),
        }
        for t in templates:
            name = names.member_clique(group.metadata.name, j, t.name)
            spec = with_environment(t.spec.pod_spec, _group_environment(pods))
            if channels:
                spec = mnnvl.with_group_channel(spec, pcs, t, config, index)
            parents = startup.awaited_cliques(pcs, t, index, gang)
            yield _clique_manifest(pcs, t, name, "pcsg-podclique", extra_labels, owner, spec, parents, policy)


def gang_labels(placement: Placement, line: Line, gang: str) -> dict[str, str | None]:
    """Return the labels of a scaling group's clique that name its gang. The value None means that the label must be
    absent."""
    awaited = placement.awaited_gangs(gang)
    return line.clique_labels(gang, awaited[0] if awaited else "")


def _without_absent(optional_labels: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in optional_labels.items() if value is not None}


def _group_environment(template_pods: int) -> list[Manifest]:
    def label(name: str, key: str) -> Manifest:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}}}

    return [
        label("GROVE_PCSG_NAME", labels.SCALING_GROUP),
        {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": str(template_pods)},
        label("GROVE_PCSG_INDEX", labels.SCALING_GROUP_REPLICA_INDEX),
    ]


def with_environment(pod_spec: Manifest, environment: list[Manifest]) -> Manifest:
    """Return the pod spec with environment variables prepended in every container and init container. Variables of the
    template with the same names are dropped (OBJ-252 to OBJ-254)."""
    injected = {variable["name"] for variable in environment}

    def container(old: Manifest) -> Manifest:
        user_variables = [variable for variable in old.get("env") or () if variable.get("name") not in injected]
        return {**old, "env": [*environment, *user_variables]}

    result = dict(pod_spec)
    for field in ("initContainers", "containers"):
        if pod_spec.get(field):
            result[field] = [container(c) for c in pod_spec[field]]
    return result


def clique_config(pcs: PodCliqueSet, clique: PodClique) -> ScalingGroupConfig | None:
    """Return the configuration of the scaling group that a clique belongs to; None for a standalone clique."""
    group = clique.metadata.label(labels.SCALING_GROUP)
    return group_config(pcs, clique.metadata.label(labels.REPLICA_INDEX), group) if group else None


def group_config(pcs: PodCliqueSet, index: str, group: str) -> ScalingGroupConfig | None:
    """Return the configuration of the scaling group object with this name, or None if there is none."""
    name = group.removeprefix(f"{pcs.metadata.name}-{index}-")
    return next((config for config in group_configs(pcs) if config.name == name), None)


def clique_template(pcs: PodCliqueSet, clique: PodClique) -> CliqueTemplate | None:
    """Return the template of a clique object, or None if there is none."""
    group = clique.metadata.label(labels.SCALING_GROUP)
    if group:
        prefix = f"{group}-{clique.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX)}-"
    else:
        prefix = f"{pcs.metadata.name}-{clique.metadata.label(labels.REPLICA_INDEX)}-"
    return find_template(pcs, clique.metadata.name.removeprefix(prefix))
