"""Scenes for the filters: a small cluster and pods to place on it. The same seed always yields the same scene."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from kube.resource import NAMESPACES, NODES, PODS, Resource
from tests.kube_scheduler import nodes
from tests.kube_scheduler.draw import Draw, Manifest
from tests.kube_scheduler.pods import PodDraw
from tests.kube_scheduler.storage import StorageDraw

CANDIDATES = 40
"""The number of candidate pods in a scene."""
STORAGE = "storage.k8s.io"
RESOURCES = {
    resource.plural: resource
    for resource in (
        NAMESPACES,
        NODES,
        Resource(STORAGE, "v1", "storageclasses", "StorageClass", False),
        Resource(STORAGE, "v1", "csinodes", "CSINode", False),
        Resource(STORAGE, "v1", "csidrivers", "CSIDriver", False),
        Resource(STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity"),
        Resource("", "v1", "persistentvolumes", "PersistentVolume", False),
        Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
        Resource(STORAGE, "v1", "volumeattachments", "VolumeAttachment", False),
        PODS,
    )
}
"""The resources of a scene by their plural names, in the order in which their objects are created."""


@dataclass(frozen=True)
class Scene:
    """The objects of a scene by plural resource name, and the pods to place."""

    seed: int
    objects: Mapping[str, Sequence[Manifest]]
    candidates: Sequence[Manifest]

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes."""
        return [node["metadata"]["name"] for node in self.objects["nodes"]]

    @property
    def digest(self) -> str:
        """The digest of all objects that are sent to the API server."""
        text = orjson.dumps([self.objects, self.candidates], option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()[:12]


def scene(seed: int) -> Scene:
    """Draw a scene."""
    draw = Draw(seed)
    names = [f"n{number}" for number in range(draw.number(6, 10))]
    objects: dict[str, Sequence[Manifest]] = {
        "namespaces": [nodes.namespace(draw, name) for name in nodes.NAMESPACES],
        "nodes": [nodes.node(draw, name) for name in names],
    }
    storage = StorageDraw(draw, names, attached=seed % 4 == 0)

    def pod(name: str) -> PodDraw:
        return PodDraw(draw, name, storage.claims, names)

    objects |= {plural: storage.objects[plural] for plural in list(RESOURCES)[2:-1]}
    objects["pods"] = [pod(f"bound-{number}").bound() for number in range(draw.number(8, 18))]
    return Scene(seed, objects, [pod(f"pod-{number}").candidate() for number in range(CANDIDATES)])
