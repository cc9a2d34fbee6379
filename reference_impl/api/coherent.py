"""The kind PodGangMap and the options of coherent updates (docs/spec/coherent.md, section 2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from kube.objects import ObjectMeta
from reference_impl.api.base import Int, Model, Required
from reference_impl.api.schema import crd


class GangLayout(StrEnum):
    """The way in which a coherent update forms gangs: an anchor for each step, or one anchor only (ours, COH-R01)."""

    PER_STEP = "PerStep"
    SINGLE_ANCHOR = "SingleAnchor"


class CoherentOptions(Model):
    """`spec.updateStrategy.coherent` of a PodCliqueSet."""

    gang_layout: GangLayout | None = None


class RollingUpdate(Model):
    """The number of pods of a clique, or replicas of a scaling group, that may be unavailable in an update, and the
    time within which it has to progress (COH-061, GM-100)."""

    max_unavailable: Int | None = None
    progress_deadline: str | None = None


class EntryRole(StrEnum):
    """The purpose of an entry of a map (GM-31)."""

    ANCHOR = "Anchor"
    """One gang: standalone pods, and the replicas of scaling groups without which they are of no use."""
    TAIL = "Tail"
    """Further replicas of scaling groups, one gang for each."""
    SCALE_OUT = "ScaleOut"
    """Replicas that scaling has added, one gang for each."""


class MapEntry(Model):
    """Gangs of one epoch: their pods of each standalone clique and their replicas of each scaling group, by template
    names, and the epochs of the entries that they wait for (GM-31)."""

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
    """The assignment of pods to gangs for one replica of a set (GM-10 to GM-15, GM-30)."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: Annotated[PodGangMapSpec, Required] = msgspec.field(default_factory=PodGangMapSpec)
