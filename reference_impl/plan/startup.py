"""Startup order: which cliques a clique starts after, and the init container that makes its pods wait for them (spec
OBJ-601 to OBJ-607, OBJ-630 to OBJ-634)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reference_impl.api.models import CliqueTemplate, PodCliqueSet, ScalingGroupConfig, StartupType
from reference_impl.plan import labels, names
from reference_impl.plan.layout import Entry, EntryGang

CONTAINER = "grove-initc"
RESTRICTED: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context that the Pod Security Standard `restricted` requires of a container, whatever the pod has."""
TOKEN_VOLUME = "sa-token-secret-vol"  # noqa: S105 - the name of a volume
POD_INFO_VOLUME = "pod-info-vol"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
POD_INFO_PATH = "/var/grove/pod-info"


def _group_of(pcs: PodCliqueSet, name: str) -> ScalingGroupConfig | None:
    groups = pcs.spec.template.pod_clique_scaling_groups or ()
    return next((config for config in groups if name in config.clique_names), None)


def _full_name(pcs: PodCliqueSet, index: int, name: str, group: ScalingGroupConfig | None, j: int) -> str:
    if group is None:
        return names.clique(pcs.metadata.name, index, name)
    return names.member_clique(names.scaling_group(pcs.metadata.name, index, group.name), j, name)


def base(pcs: PodCliqueSet) -> EntryGang:
    """The first gang of a new replica: all standalone cliques and `minAvailable` replicas of each group. A
    standalone clique, whose pods may be in several gangs later, starts after its predecessors there."""
    groups = pcs.spec.template.pod_clique_scaling_groups or ()
    grouped = {name for config in groups for name in config.clique_names}
    return EntryGang(
        Entry(
            "",
            "",
            cliques={t.name: t.spec.replicas for t in pcs.spec.template.cliques if t.name not in grouped},
            groups={config.name: tuple(range(config.min_available)) for config in groups},
        )
    )


def waits(pcs: PodCliqueSet, template: CliqueTemplate, index: int, gang: EntryGang) -> dict[str, int]:
    """Parent → how many of its pods have to be ready, for the pods of a template in a gang. Only parents in the same
    gang are waited for: the others may be elsewhere, or of another version (COH-263, COH-264)."""
    counts: dict[str, int] = {}
    for name in _predecessors(pcs, template, index, gang):
        counts |= _in_gang(pcs, name, index, gang)
    return counts


def _predecessors(pcs: PodCliqueSet, template: CliqueTemplate, index: int, gang: EntryGang) -> list[str]:
    """The names of the templates that a template starts after in a gang."""
    match pcs.spec.template.clique_startup_type:
        case StartupType.EXPLICIT:
            return list(template.spec.starts_after or ())
        case StartupType.IN_ORDER:
            order = [t.name for t in pcs.spec.template.cliques]
            before = order[: order.index(template.name)]
            # Where a gang has one replica of a group, only the order of its own cliques matters.
            return [name for name in before if _in_gang(pcs, name, index, gang)][-1:]
    return []


def _in_gang(pcs: PodCliqueSet, name: str, index: int, gang: EntryGang) -> dict[str, int]:
    """The clique objects of a template of which a gang has pods, and how many have to be ready."""
    minimum = next((t.spec.minimum for t in pcs.spec.template.cliques if t.name == name), 1)
    group = _group_of(pcs, name)
    if group is None:
        count = gang.cliques.get(name)
        if count is None:
            return {}
        least = minimum if not gang.entry.depends_on else min(minimum, count)
        return {_full_name(pcs, index, name, None, 0): least}
    return {_full_name(pcs, index, name, group, j): minimum for j in gang.groups.get(group.name, ())}


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
        "securityContext": RESTRICTED,
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
