"""The objects of Grove's back-end for the KAI scheduler: a PodGroup for each PodGang, labels and annotations of its
pods, and a Topology for each ClusterTopologyBinding (spec OBJ-525 to OBJ-530, CTV-08)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reference_impl.api import kai as api
from reference_impl.api.kai import KaiPodGroup
from reference_impl.api.models import (
    PODGANGS,
    TOPOLOGY_BINDINGS,
    ClusterTopologyBinding,
    GangTopology,
    PodCliqueSet,
    PodGang,
)
from reference_impl.plan import labels
from reference_impl.plan.children import Manifest, owner_reference

SCHEDULER = "kai-scheduler"
QUEUE = "kai.scheduler/queue"
"""Label or annotation of a set or of its clique templates; the label takes precedence (ANN-05, OBJ-528)."""
SKIP_PODGROUPER = "kai.scheduler/skip-podgrouper"
"""Annotation of gangs and pods that tells KAI's own podgrouper to ignore them."""
POD_GROUP = "pod-group-name"
"""Annotation of a pod that names its PodGroup."""
SUBGROUP = "kai.scheduler/subgroup-name"
"""Label of a pod that names its subgroup, which has the name of the pod's clique."""
TOPOLOGY = "kai.scheduler/topology"
"""Annotation of a gang whose topology does not come from a ClusterTopologyBinding."""
MAPPING_FAILED = "KAIBackendMappingFailed"


class KaiMappingError(Exception):
    """A gang cannot be expressed as a PodGroup of KAI. `str()` returns the note of the event about the gang."""


def queue_of(own_labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> str:
    """Return the queue that the labels or annotations of an object name, or an empty string if they name none."""
    return (own_labels or {}).get(QUEUE) or (annotations or {}).get(QUEUE) or ""


def queue(gang: PodGang, pcs: PodCliqueSet | None) -> str:
    """Return the queue of a gang: the queue of its set, or else the only queue among the clique templates (OBJ-528). A
    gang without a set names its queue itself. Raises KaiMappingError if there is no queue, or if the clique templates
    name different queues."""
    if pcs is None:
        if gang_queue := queue_of(gang.metadata.labels, gang.metadata.annotations):
            return gang_queue
        raise KaiMappingError(f"no KAI queue is configured on PodGang {'/'.join(gang.metadata.key)}")
    if set_queue := queue_of(pcs.metadata.labels, pcs.metadata.annotations):
        return set_queue
    queues = {queue_name for c in pcs.spec.template.cliques if (queue_name := queue_of(c.labels, c.annotations))}
    set_name = f"PodCliqueSet {'/'.join(pcs.metadata.key)}"
    if not queues:
        raise KaiMappingError(f"no KAI queue is configured on {set_name} or its PodClique templates")
    if len(queues) > 1:
        raise KaiMappingError(f"conflicting KAI queues on {set_name} PodClique templates: [{' '.join(sorted(queues))}]")
    return queues.pop()


def pod_group(gang: PodGang, of_queue: str) -> Manifest:
    """Return the PodGroup of a gang. It has a subgroup for each topology constraint group and then one for each
    PodGroup of the gang, below the subgroup of its constraint group if it has one (OBJ-526). Raises KaiMappingError if
    a constraint names no topology (OBJ-530)."""
    spec = gang.spec
    configs = [config for config in spec.topology_constraint_group_configs or () if config.pod_group_names]
    parents = {name: config.name for config in configs for name in config.pod_group_names}
    subgroups: list[Manifest] = [
        {"name": config.name, "minSubGroup": len(config.pod_group_names)}
        | _constraint(gang, config.topology_constraint)
        for config in configs
    ]
    subgroups += [
        {"name": group.name, "minMember": group.min_replicas}
        | ({"parent": parents[group.name]} if group.name in parents else {})
        | _constraint(gang, group.topology_constraint)
        for group in spec.podgroups
    ]
    body: Manifest = {"minMember": sum(group.min_replicas for group in spec.podgroups), "queue": of_queue}
    if spec.priority_class_name:
        body["priorityClassName"] = spec.priority_class_name
    meta = gang.metadata
    return {
        "apiVersion": api.POD_GROUPS.api_version,
        "kind": api.POD_GROUPS.kind,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": {labels.MANAGED_BY: labels.MANAGER, QUEUE: of_queue},
            "ownerReferences": [owner_reference(PODGANGS.api_version, PODGANGS.kind, meta)],
        },
        "spec": {**body, **_constraint(gang, spec.topology_constraint), "subGroups": subgroups},
    }


def _constraint(gang: PodGang, constraint: GangTopology | None) -> Manifest:
    pack = constraint.pack_constraint if constraint is not None else None
    if pack is None or not (pack.required or pack.preferred):
        return {}
    notes = gang.metadata.annotations or {}
    name = notes.get(labels.TOPOLOGY_NAME) or notes.get(TOPOLOGY)
    if not name:
        raise KaiMappingError("topology name cannot be empty when topology constraints are defined")
    keys = {"requiredTopologyLevel": pack.required, "preferredTopologyLevel": pack.preferred}
    return {"topologyConstraint": {"topology": name, **{field: key for field, key in keys.items() if key}}}


def correction(desired: Manifest, existing: KaiPodGroup) -> Manifest:
    """Return the merge patch that corrects a PodGroup, or an empty dict if it is correct. The patch does not change the
    queue or additions by other clients (OBJ-529)."""
    spec: Manifest = {}
    for field in ("minMember", "priorityClassName", "topologyConstraint", "subGroups"):
        value, current = desired["spec"].get(field), existing.spec.get(field)
        if (value or None) != (current or None):
            removed_fields = dict.fromkeys(set(current) - set(value or {})) if isinstance(current, dict) else {}
            spec[field] = {**value, **removed_fields} if isinstance(value, dict) else value
    return {"spec": spec} if spec else {}


def pod_marks(gang: str, clique: str) -> Manifest:
    """Return the annotations and the label of a pod of a gang (OBJ-525)."""
    return {"annotations": {SKIP_PODGROUPER: "true", POD_GROUP: gang}, "labels": {SUBGROUP: clique}}


def with_marks(pod: Manifest) -> Manifest:
    """Return the manifest of a pod, with these annotations and the label if KAI schedules the pod."""
    if pod["spec"].get("schedulerName") != SCHEDULER:
        return pod
    meta: dict[str, Any] = pod["metadata"]
    kai_marks = pod_marks(meta["labels"].get(labels.PODGANG, ""), meta["labels"].get(labels.PODCLIQUE, ""))
    return {**pod, "metadata": {**meta, **{key: {**meta.get(key, {}), **kai_marks[key]} for key in kai_marks}}}


def external_topology(binding: ClusterTopologyBinding) -> str:
    """Return the name of the externally managed Topology that a binding names, or an empty string if it names none."""
    references = binding.spec.scheduler_topology_bindings or ()
    return next((reference.topology_reference for reference in references if reference.scheduler_name == SCHEDULER), "")


def topology(binding: ClusterTopologyBinding) -> Manifest | None:
    """Return the Topology of a binding, or None if the binding names an external one (CTV-08)."""
    if external_topology(binding):
        return None
    owner = owner_reference(TOPOLOGY_BINDINGS.api_version, TOPOLOGY_BINDINGS.kind, binding.metadata)
    return {
        "apiVersion": api.TOPOLOGIES.api_version,
        "kind": api.TOPOLOGIES.kind,
        "metadata": {
            "name": binding.metadata.name,
            "labels": {labels.MANAGED_BY: labels.MANAGER},
            "ownerReferences": [owner],
        },
        "spec": {"levels": [{"nodeLabel": level.key} for level in binding.spec.levels]},
    }
