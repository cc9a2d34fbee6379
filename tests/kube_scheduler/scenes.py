"""Scenes to try filters on: a small cluster, and pods that are to be placed on it, the same for the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from tests.kube_scheduler import nodes, pods, storage
from tests.kube_scheduler.draw import Draw
from tests.kube_scheduler.nodes import NAMESPACES, Manifest

CANDIDATES = 40
"""How many pods a scene tries."""


@dataclass(frozen=True)
class Scene:
    """Objects by their plural names, in the order in which they are created, and the pods that are to be placed."""

    seed: int
    objects: Mapping[str, Sequence[Manifest]]
    candidates: Sequence[Manifest]

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes."""
        return [node["metadata"]["name"] for node in self.objects["nodes"]]

    @property
    def digest(self) -> str:
        """Digest of everything that is sent to the API server."""
        text = orjson.dumps([self.objects, self.candidates], option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()[:12]


def scene(seed: int) -> Scene:
    """Draw a scene."""
    draw = Draw(seed)
    names = [f"n{number}" for number in range(draw.number(6, 10))]
    objects: dict[str, Sequence[Manifest]] = {
        "namespaces": [nodes.namespace(draw, name) for name in NAMESPACES],
        "nodes": [nodes.node(draw, name) for name in names],
    }
    drawn = storage.storage(draw, objects["nodes"], NAMESPACES)
    for plural in PLURALS[2:-1]:
        objects[plural] = drawn.objects.get(plural, [])

    def pod(name: str) -> pods.PodDraw:
        namespace = draw.weighted({"a": 3, "b": 2, "c": 1})
        return pods.PodDraw(draw, name, namespace, drawn.claims(namespace), names)

    objects["pods"] = [pods.bound(pod(f"bound-{number}")) for number in range(draw.number(8, 18))]
    return Scene(seed, objects, [pods.candidate(pod(f"pod-{number}")) for number in range(CANDIDATES)])


PLURALS = (
    "namespaces",
    "nodes",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "csistoragecapacities",
    "persistentvolumes",
    "persistentvolumeclaims",
    "pods",
)
"""Kinds of objects of a scene."""
