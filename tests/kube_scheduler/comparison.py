"""Compare the reference's filters with the answers of kube-scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.feasibility import feasible_nodes
from reference_impl.scheduler.model import Namespace, Node, Pod
from reference_impl.scheduler.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from tests.kube_scheduler.nodes import Manifest
from tests.kube_scheduler.scenes import Scene
from tests.kube_scheduler.stored import stored

SHOWN = 5
"""How many differences a report shows in full."""


@dataclass(frozen=True)
class Difference:
    """A node that kube-scheduler and the reference judge differently, and why the reference refuses it, if it does."""

    scene: Scene
    pod: Manifest
    node: str
    feasible: bool
    reason: str
    message: str = ""

    @property
    def kind(self) -> str:
        """The plugin of the reference that refuses the node, or that none does."""
        plugin = self.reason.partition(":")[0]
        return f"only {plugin} of the reference refuses" if self.feasible else "only kube-scheduler refuses"

    @property
    def size(self) -> int:
        """How much a reader has to look at."""
        return len(str(self.pod)) * 10 + len(str(self.scene.objects))

    def __str__(self) -> str:
        said = f", kube-scheduler says: {self.message}" if self.message else ""
        ours = self.reason or "feasible"
        expected = "feasible" if self.feasible else "not feasible"
        name = self.pod["metadata"]["name"]
        return (
            f"seed {self.scene.seed}, pod {name}, node {self.node}: expected {expected}, observed {ours}{said}\n"
            + yaml.safe_dump({"pod": self.pod, **self._related()}, sort_keys=False)
        )

    def _related(self) -> dict[str, Any]:
        """Return the node, the pods on it, and the storage of the namespace."""
        objects, space = self.scene.objects, self.pod["metadata"]["namespace"]
        names = {volume["name"] for volume in self.pod["spec"].get("volumes", ())}
        claims = [
            claim
            for claim in objects["persistentvolumeclaims"]
            if claim["metadata"]["namespace"] == space and claim["metadata"]["name"] in names
        ]
        return {
            "node": [node for node in objects["nodes"] if node["metadata"]["name"] == self.node],
            "pods on the node": [pod for pod in objects["pods"] if pod["spec"]["nodeName"] == self.node],
            **({"claims": claims} if claims else {}),
        }


@dataclass(frozen=True)
class Verdicts:
    """The verdicts of the reference on one scene: for each candidate, the reason by node."""

    scene: Scene
    reasons: Sequence[dict[str, str]]

    def differences(self, feasible: Sequence[Iterable[str]], messages: Sequence[str] = ()) -> list[Difference]:
        """Compare with the feasible nodes that kube-scheduler has found."""
        scene = self.scene
        return [
            Difference(scene, stored(pod), node, node in nodes, reason, message)
            for pod, reasons, nodes, message in zip(
                scene.candidates, self.reasons, map(set, feasible), messages or [""] * len(feasible), strict=True
            )
            for node, reason in reasons.items()
            if (node in nodes) != (not reason)
        ]


def verdicts(scene: Scene) -> Verdicts:
    """Run the reference's filters on a scene."""
    objects = scene.objects

    def decoded(plural: str, kind: type[Any]) -> list[Any]:
        manifests = map(stored, objects[plural]) if plural == "pods" else objects[plural]
        return [msgspec.convert(manifest, kind, strict=False) for manifest in manifests]

    state = ClusterState(
        nodes=decoded("nodes", Node),
        pods=decoded("pods", Pod),
        namespaces=decoded("namespaces", Namespace),
        volumes=decoded("persistentvolumes", PersistentVolume),
        claims=decoded("persistentvolumeclaims", PersistentVolumeClaim),
        storage_classes=decoded("storageclasses", StorageClass),
        csi_nodes=decoded("csinodes", CsiNode),
        csi_drivers=decoded("csidrivers", CsiDriver),
        storage_capacities=decoded("csistoragecapacities", CsiStorageCapacity),
    )
    pods = [msgspec.convert(stored(pod), Pod, strict=False) for pod in scene.candidates]
    return Verdicts(scene, [feasible_nodes(pod, state) for pod in pods])


def report(differences: Sequence[Difference]) -> str:
    """Return the differences by kind, the smallest of each kind in full; empty if there are none."""
    kinds = Counter(each.kind for each in differences)
    smallest = {kind: min((d for d in differences if d.kind == kind), key=lambda d: d.size) for kind in kinds}
    lines = [f"{count} × {kind}" for kind, count in kinds.most_common()]
    return "\n".join([*lines, *(str(smallest[kind]) for kind, _ in kinds.most_common(SHOWN))])
