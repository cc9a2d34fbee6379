"""Startup order: which cliques a clique starts after, and the init container that makes its pods wait for them (spec
OBJ-601 to OBJ-607, OBJ-630 to OBJ-634)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueSet, ScalingGroupConfig, StartupType
from reference_impl.plan import labels, names
from reference_impl.plan.coherent.layout import Entry

CONTAINER = "grove-initc"
TOKEN_VOLUME = "sa-token-secret-vol"  # noqa: S105 - the name of a volume
POD_INFO_VOLUME = "pod-info-vol"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
POD_INFO_PATH = "/var/grove/pod-info"


@dataclass(frozen=True)
class Place:
    """The place of a clique object: a replica of the set and, if `config` is given, a replica of that group."""

    index: int
    config: ScalingGroupConfig | None = None
    group_replica: int = 0
    gang: Entry | None = None
    """Its gang, if that comes from a PodGangMap."""

    @property
    def scaled(self) -> bool:
        """Whether the clique belongs to a scaled gang."""
        return self.config is not None and self.group_replica >= self.config.min_available


def parents(pcs: PodCliqueSet, template: CliqueTemplate, place: Place) -> list[str]:
    """Full names of the cliques that a clique starts after; never one of another gang."""
    if place.gang is not None:
        return list(waits(pcs, template, place.index, place.gang))
    found: dict[str, None] = {}
    for name in _predecessors(pcs, template, place):
        found |= dict.fromkeys(_in_gang_of(pcs, name, place))
    return list(found)


def _predecessors(pcs: PodCliqueSet, template: CliqueTemplate, place: Place) -> list[str]:
    """The names of the templates that a template starts after."""
    match pcs.spec.template.clique_startup_type:
        case StartupType.EXPLICIT:
            return template.spec.starts_after or []
        case StartupType.IN_ORDER:
            order = [t.name for t in pcs.spec.template.cliques]
            before = order[: order.index(template.name)]
            if place.config is not None and place.scaled:
                # In a scaled gang only the order of its own cliques matters (OBJ-605 is observed only).
                before = [name for name in before if name in place.config.clique_names]
            return before[-1:]
    return []


def _in_gang_of(pcs: PodCliqueSet, name: str, place: Place) -> list[str]:
    """The clique objects of a template in the same gang as the place."""
    group = _group_of(pcs, name)
    if place.scaled:
        if group is None or group is not place.config:
            return []
        return [_full_name(pcs, place.index, name, group, place.group_replica)]
    replicas = range(group.min_available) if group is not None else (0,)
    return [_full_name(pcs, place.index, name, group, j) for j in replicas]


def _group_of(pcs: PodCliqueSet, name: str) -> ScalingGroupConfig | None:
    groups = pcs.spec.template.pod_clique_scaling_groups or ()
    return next((config for config in groups if name in config.clique_names), None)


def _full_name(pcs: PodCliqueSet, index: int, name: str, group: ScalingGroupConfig | None, j: int) -> str:
    if group is None:
        return names.clique(pcs.metadata.name, index, name)
    return names.member_clique(names.scaling_group(pcs.metadata.name, index, group.name), j, name)


def waits(pcs: PodCliqueSet, template: CliqueTemplate, index: int, gang: Entry) -> dict[str, int]:
    """Parent → how many of its pods have to be ready, for the pods of a template in a gang of a PodGangMap. Only
    parents in the same gang are waited for: the others may be elsewhere, or of another version (COH-263, COH-264)."""
    found: dict[str, int] = {}
    order = [t.name for t in pcs.spec.template.cliques]
    before = order[: order.index(template.name)]
    match pcs.spec.template.clique_startup_type:
        case StartupType.EXPLICIT:
            before = list(template.spec.starts_after or ())
        case StartupType.IN_ORDER:
            before = [name for name in before if _in_gang(pcs, name, index, gang)][-1:]
        case _:
            before = []
    for name in before:
        found |= _in_gang(pcs, name, index, gang)
    return found


def _in_gang(pcs: PodCliqueSet, name: str, index: int, gang: Entry) -> dict[str, int]:
    """The clique objects of a template of which a gang has pods, and how many have to be ready."""
    minimum = next((t.spec.minimum for t in pcs.spec.template.cliques if t.name == name), 1)
    group = _group_of(pcs, name)
    if group is None:
        count = gang.cliques.get(name, 0)
        return {_full_name(pcs, index, name, None, 0): min(minimum, count)} if count else {}
    return {_full_name(pcs, index, name, group, j): minimum for j in gang.groups.get(group.name, ())}


def minimums(pcs: PodCliqueSet, clique: PodClique) -> dict[str, int]:
    """Parent → how many of its pods have to be ready, in the order of `spec.startsAfter`. Templates are found by the
    complete names of their cliques (OBJ-634). For a parent without a template, which only somebody else can have
    written, one pod has to be ready."""
    known = dict(_minimums_of_replica(pcs, clique))
    return {parent: known.get(parent, 1) for parent in clique.spec.starts_after or ()}


def _minimums_of_replica(pcs: PodCliqueSet, clique: PodClique) -> Iterator[tuple[str, int]]:
    index = int(clique.metadata.label(labels.REPLICA_INDEX))
    own = clique.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX)
    for template in pcs.spec.template.cliques:
        group = _group_of(pcs, template.name)
        replicas = [0] if group is None else [*range(group.min_available), *([int(own)] if own else [])]
        for j in replicas:
            yield _full_name(pcs, index, template.name, group, j), template.spec.minimum


def with_wait(pod_spec: dict[str, Any], pcs_name: str, waits: dict[str, int], image: str) -> dict[str, Any]:
    """The pod spec with the init container after the template's own ones, and the volumes that it reads."""
    if not waits:
        return pod_spec
    return {
        **pod_spec,
        "initContainers": [*(pod_spec.get("initContainers") or ()), container(waits, image)],
        "volumes": [*(pod_spec.get("volumes") or ()), *volumes(pcs_name)],
    }


def container(waits: dict[str, int], image: str) -> dict[str, Any]:
    """The init container that waits for the cliques in `waits`: clique → number of Ready pods (OBJ-630 to OBJ-632)."""
    return {
        "name": CONTAINER,
        "image": image,
        "args": [f"--podcliques={parent}:{minimum}" for parent, minimum in waits.items()],
        "volumeMounts": [
            {"name": POD_INFO_VOLUME, "mountPath": POD_INFO_PATH, "readOnly": True},
            {"name": TOKEN_VOLUME, "mountPath": TOKEN_PATH, "readOnly": True},
        ],
    }


def volumes(pcs_name: str) -> list[dict[str, Any]]:
    """The service account token, and the namespace and gang of the pod itself."""
    files = {"namespace": "metadata.namespace", "podgangname": f"metadata.labels['{labels.PODGANG}']"}
    items = [{"path": path, "fieldRef": {"fieldPath": field}} for path, field in files.items()]
    return [
        {"name": TOKEN_VOLUME, "secret": {"secretName": names.token_secret(pcs_name), "defaultMode": 420}},
        {"name": POD_INFO_VOLUME, "downwardAPI": {"items": items}},
    ]
