"""The KAI kinds that the operator writes: only the fields that it compares (docs/spec/kai.md)."""

from __future__ import annotations

from typing import Any

import msgspec

from kube.objects import ObjectMeta
from kube.resource import Resource

POD_GROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
TOPOLOGIES = Resource("kai.scheduler", "v1alpha1", "topologies", "Topology", namespaced=False)


class KaiPodSpec(msgspec.Struct, rename="camel"):
    """The fields of a pod's spec that the operator reads."""

    scheduler_name: str = ""


class KaiPod(msgspec.Struct):
    """A pod of a gang that the operator did not create."""

    metadata: ObjectMeta
    spec: KaiPodSpec = msgspec.field(default_factory=KaiPodSpec)


class KaiPodGroup(msgspec.Struct):
    """A PodGroup of KAI (OBJ-526)."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}


class KaiTopology(msgspec.Struct):
    """A Topology of KAI (CTV-08)."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}

    @property
    def keys(self) -> list[str]:
        """The node label keys of its levels, broadest first."""
        return [level.get("nodeLabel", "") for level in self.spec.get("levels") or ()]
