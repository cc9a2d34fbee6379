"""Small example clusters for the tests of filters."""

from __future__ import annotations

from typing import Any

import msgspec

from reference_impl.scheduler import storage
from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.feasibility import feasible_nodes
from reference_impl.scheduler.model import Namespace, Node, Pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KINDS = {
    "namespaces": Namespace,
    "volumes": storage.PersistentVolume,
    "claims": storage.PersistentVolumeClaim,
    "storage_classes": storage.StorageClass,
    "csi_nodes": storage.CsiNode,
    "csi_drivers": storage.CsiDriver,
    "storage_capacities": storage.CsiStorageCapacity,
    "attachments": storage.VolumeAttachment,
}


def node(name: str, zone: str = "", *, status: dict[str, Any] | None = None, **spec: Any) -> Node:
    """Return a Ready node with 8 CPUs; `status` holds additional allocatable resources."""
    labels = {HOST: name} | ({ZONE: zone} if zone else {}) | spec.pop("labels", {})
    status = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "10"} | (status or {})}
    status["conditions"] = [{"type": "Ready", "status": "True"}]
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}, Node)


def pod(name: str = "p", at: str = "", labels: dict[str, str] | None = None, **fields: Any) -> Pod:
    """Return a pod, which runs on node `at` if the name is not empty. `fields` are fields of its spec, and its
    namespace, metadata and status."""
    metadata = {"name": name, "namespace": fields.pop("namespace", "ns"), "uid": f"u-{name}", "labels": labels or {}}
    metadata |= fields.pop("metadata", {})
    manifest = {"metadata": metadata, "status": fields.pop("status", {})}
    manifest["spec"] = {"containers": [{"name": "main"}], "nodeName": at, **fields}
    return msgspec.convert(manifest, Pod, strict=False)


def cluster(nodes: list[Node], *pods: Pod, **objects: list[dict[str, Any]]) -> ClusterState:
    """Return the state of a cluster; `objects` are manifests by field of ClusterState."""
    typed = {field: msgspec.convert(items, list[KINDS[field]], strict=False) for field, items in objects.items()}
    return ClusterState(nodes, pods, **typed)  # type: ignore[arg-type]


def feasible(subject: Pod, state: ClusterState) -> str:
    """Return the names of the nodes on which the pod may be placed, joined by spaces."""
    return " ".join(name for name, reason in feasible_nodes(subject, state).items() if not reason)


def reasons(subject: Pod, state: ClusterState) -> str:
    """Return all reasons, joined by semicolons."""
    return "; ".join(reason for reason in feasible_nodes(subject, state).values() if reason)


def requests(**amounts: str) -> list[dict[str, Any]]:
    """Return one container with these requests."""
    return [{"name": "main", "resources": {"requests": amounts}}]
