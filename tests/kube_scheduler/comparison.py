"""The comparison of the reference's filters with the filter results of kube-scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from reference_impl.scheduler import storage
from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.feasibility import feasible_nodes
from reference_impl.scheduler.model import Namespace, Node, Pod, pod_type
from tests.kube_scheduler.draw import Manifest
from tests.kube_scheduler.scenes import Scene
from tests.kube_scheduler.stored import stored

FIELDS: dict[str, tuple[str, Any]] = {
    "namespaces": ("namespaces", Namespace),
    "nodes": ("nodes", Node),
    "storageclasses": ("storage_classes", storage.StorageClass),
    "csinodes": ("csi_nodes", storage.CsiNode),
    "csidrivers": ("csi_drivers", storage.CsiDriver),
    "csistoragecapacities": ("storage_capacities", storage.CsiStorageCapacity),
    "persistentvolumes": ("volumes", storage.PersistentVolume),
    "persistentvolumeclaims": ("claims", storage.PersistentVolumeClaim),
    "volumeattachments": ("attachments", storage.VolumeAttachment),
}
"""The field of the reference's ClusterState and the type of the objects, by resource. The type of pods depends on the
Kubernetes version."""


@dataclass(frozen=True)
class Difference:
    """A node that kube-scheduler and the reference judge differently, and the reference's reason if it rejects the
    node."""

    scene: Scene
    pod: Manifest
    node: str
    feasible: bool
    reason: str
    message: str

    @property
    def kind(self) -> str:
        """The side that rejects the node: a plugin of the reference, or kube-scheduler."""
        return (
            f"only {self.reason.partition(':')[0]} of the reference refuses" if self.feasible else "only kube-scheduler"
        )

    @property
    def size(self) -> int:
        """The amount of text that a reader must inspect, in which the pod counts ten times."""
        return len(str(self.pod)) * 10 + len(str(self.scene.objects))

    def __str__(self) -> str:
        objects, metadata, volumes = self.scene.objects, self.pod["metadata"], self.pod["spec"].get("volumes", ())
        claim_keys = [(metadata["namespace"], volume["name"]) for volume in volumes]
        claims = objects["persistentvolumeclaims"]
        documents = {
            "pod": self.pod,
            "node": [node for node in objects["nodes"] if node["metadata"]["name"] == self.node],
            "pods on the node": [pod for pod in objects["pods"] if pod["spec"]["nodeName"] == self.node],
            "claims": [c for c in claims if (c["metadata"]["namespace"], c["metadata"]["name"]) in claim_keys],
        }
        return (
            f"seed {self.scene.seed}, pod {metadata['name']}, node {self.node}: "
            f"expected {'feasible' if self.feasible else 'not feasible'}, observed {self.reason or 'feasible'}; "
            f"kube-scheduler: {self.message or 'recorded'}\n{yaml.safe_dump(documents, sort_keys=False)}"
        )


def verdicts(scene: Scene, kubernetes: str) -> list[dict[str, str]]:
    """Return the reference's verdict on each candidate: the reason for rejection by node name, which is empty for a
    feasible node."""
    major, minor, *_ = map(int, kubernetes.split("."))
    kinds = {**FIELDS, "pods": ("pods", pod_type((major, minor)))}
    decoded: dict[str, Any] = {
        field: [msgspec.convert(stored(plural, manifest), kind, strict=False) for manifest in scene.objects[plural]]
        for plural, (field, kind) in kinds.items()
    }
    state = ClusterState(**decoded)
    pods = [msgspec.convert(stored("pods", pod), Pod, strict=False) for pod in scene.candidates]
    return [feasible_nodes(pod, state) for pod in pods]


def compare(
    scene: Scene, feasible: Sequence[Iterable[str]], kubernetes: str, messages: Sequence[str] = ()
) -> list[Difference]:
    """Compare the verdicts of the reference with the feasible nodes and messages of kube-scheduler, whose version is
    `kubernetes`."""
    return [
        Difference(scene, stored("pods", pod), node, node in nodes, reason, message)
        for pod, reasons, nodes, message in zip(
            scene.candidates,
            verdicts(scene, kubernetes),
            map(set, feasible),
            messages or [""] * len(feasible),
            strict=True,
        )
        for node, reason in reasons.items()
        if (node in nodes) != (not reason)
    ]


def report(differences: Sequence[Difference]) -> str:
    """Return the number of differences of each kind and the smallest difference of each kind, or an empty string
    without differences."""
    counts = Counter(difference.kind for difference in differences)
    smallest = {d.kind: d for d in sorted(differences, key=lambda d: d.size, reverse=True)}
    return "\n".join([*(f"{n} × {kind}" for kind, n in counts.items()), *map(str, smallest.values())])
