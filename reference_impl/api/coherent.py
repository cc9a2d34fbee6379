"""The kind PodGangMap and the options of coherent updates (docs/spec/coherent.md, section 2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from kube.objects import ObjectMeta
from reference_impl.api.base import Int, Model, Required
from reference_impl.api.schema import crd


class GangLayout(StrEnum):
    """How a coherent update forms gangs: an anchor for each step, or one anchor only (ours, COH-R01)."""

    PER_STEP = "PerStep"
    SINGLE_ANCHOR = "SingleAnchor"


class CoherentOptions(Model):
    """`spec.updateStrategy.coherent` of a PodCliqueSet."""

    gang_layout: GangLayout | None = None


class RollingUpdate(Model):
    """How many pods of a clique, or replicas of a scaling group, may be unavailable in an update (COH-061)."""

    max_unavailable: Int | None = None


class MapEntry(Model):
    """A gang: its pods of each standalone clique and replicas of each scaling group, by template names (COH-055)."""

    name: Annotated[str, crd(required=True, minLength=1, maxLength=63)] = ""
    pod_clique_set_generation_hash: Annotated[str, Required] = ""
    pod_cliques: dict[str, Int] | None = None
    pcsg_replica_indices: dict[str, list[Int]] | None = None
    labels: dict[str, str] | None = None
    depends_on: Annotated[dict[str, Any] | None, crd(openapi="io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector")] = (
        None
    )


class PodGangMapSpec(Model):
    """`spec` of a PodGangMap (COH-054)."""

    pod_clique_set_replica_index: Annotated[int, crd(required=True, format="int32", minimum=0)] = 0
    entries: Annotated[list[MapEntry], crd(required=True, list_map="name")] = []


class PodGangMap(Model):
    """Which gang holds which pods, for one replica of a set (COH-050 to COH-059)."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[PodGangMapSpec, Required] = msgspec.field(default_factory=PodGangMapSpec)
