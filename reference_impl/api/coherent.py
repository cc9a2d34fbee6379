"""The kind PodGangMap and the options of coherent updates (docs/spec/coherent.md, section 2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from kube.objects import ObjectMeta
from reference_impl.api.base import Int, Model, Required
from reference_impl.api.schema import crd


class GangLayout(StrEnum):
    """How a coherent update forms gangs: an anchor for each step, or only one anchor (specific to the reference,
    COH-R01)."""

    PER_STEP = "PerStep"
    SINGLE_ANCHOR = "SingleAnchor"


class CoherentOptions(Model):
    """`spec.updateStrategy.coherent` of a PodCliqueSet."""

    gang_layout: GangLayout | None = None


class RollingUpdate(Model):
    """The number of a clique's pods, or of a scaling group's replicas, that may be unavailable during an update, and
    the time within which the update must make progress (COH-061, GM-100)."""

    max_unavailable: Int | None = None
    progress_deadline: str | None = None


class EntryRole(StrEnum):
    """The role of an entry of a PodGangMap (GM-31)."""

    ANCHOR = "Anchor"
    """One gang: the standalone pods, and the scaling group replicas that they need to be of use."""
    TAIL = "Tail"
    """Additional scaling group replicas, one gang for each."""
    SCALE_OUT = "ScaleOut"
    """Scaling group replicas that scaling has added, one gang for each."""


class MapEntry(Model):
    """The gangs of one epoch: the number of their pods for each standalone clique and the indices of their replicas for
    each scaling group, by template name, and the epochs of the entries that they wait for (GM-31)."""

    epoch: Annotated[str, crd(required=True, minLength=1, maxLength=63)] = ""
    pod_clique_set_generation_hash: Annotated[str, Required] = ""
    role: Annotated[EntryRole, Required] = EntryRole.ANCHOR
    pod_cliques: dict[str, Int] | None = None
    pcsg_replica_indices: dict[str, list[Int]] | None = None
    depends_on: list[str] | None = None


class PodGangMapSpec(Model):
    """`spec` of a PodGangMap (GM-30)."""

    pod_clique_set_replica_index: Annotated[int, crd(required=True, format="int32", minimum=0)] = 0
    entries: Annotated[list[MapEntry], crd(required=True, list_map="epoch")] = []


class PodGangMap(Model):
    """The assignment of pods to gangs for one replica of a PodCliqueSet (GM-10 to GM-15, GM-30)."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[PodGangMapSpec, Required] = msgspec.field(default_factory=PodGangMapSpec)
