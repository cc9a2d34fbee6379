"""Startup order: which cliques a clique starts after, and the init container that makes its pods wait for these cliques
(spec OBJ-601 to OBJ-607, OBJ-630 to OBJ-634)."""

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
"""The container security context that the Pod Security Standard `restricted` requires, regardless of the pod's own
security context."""
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


def base_gang(pcs: PodCliqueSet) -> EntryGang:
    """Return the first gang of a new replica, with all standalone cliques and `minAvailable` replicas of each scaling
    group. The startup order of standalone cliques is computed from this gang, because their pods may be in several
    gangs later."""
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


def awaited_cliques(pcs: PodCliqueSet, template: CliqueTemplate, index: int, gang: EntryGang) -> dict[str, int]:
    """Return the number of pods of each parent that must be Ready before the pods of a template in a gang may start.
    Only parents in the same gang count, because other parents may be elsewhere or have another version (COH-263,
    COH-264)."""
    counts: dict[str, int] = {}
    for name in _predecessors(pcs, template, index, gang):
        counts |= _cliques_in_gang(pcs, name, index, gang)
    return counts


def _predecessors(pcs: PodCliqueSet, template: CliqueTemplate, index: int, gang: EntryGang) -> list[str]:
    """Return the names of the templates that a template starts after in a gang."""
    match pcs.spec.template.clique_startup_type:
        case StartupType.EXPLICIT:
            return list(template.spec.starts_after or ())
        case StartupType.IN_ORDER:
            order = [t.name for t in pcs.spec.template.cliques]
            earlier_names = order[: order.index(template.name)]
            # In a gang with a single scaling group replica, only the order of the gang's own cliques matters.
            return [name for name in earlier_names if _cliques_in_gang(pcs, name, index, gang)][-1:]
    return []


def _cliques_in_gang(pcs: PodCliqueSet, name: str, index: int, gang: EntryGang) -> dict[str, int]:
    """Return the clique objects of a template that have pods in a gang, with the number of these pods that must be
    Ready."""
    minimum = next((t.spec.minimum for t in pcs.spec.template.cliques if t.name == name), 1)
    group = _group_of(pcs, name)
    if group is None:
        count = gang.cliques.get(name)
        if count is None:
            return {}
        minimum_in_gang = minimum if not gang.entry.depends_on else min(minimum, count)
        return {_full_name(pcs, index, name, None, 0): minimum_in_gang}
    return {_full_name(pcs, index, name, group, j): minimum for j in gang.groups.get(group.name, ())}


def with_init_container(
    pod_spec: dict[str, Any], pcs_name: str, awaited_cliques: dict[str, int], image: str
) -> dict[str, Any]:
    """Return the pod spec with the init container after the template's own init containers, and with the volumes that
    it reads."""
    if not awaited_cliques:
        return pod_spec
    return {
        **pod_spec,
        "initContainers": [*(pod_spec.get("initContainers") or ()), container(awaited_cliques, image)],
        "volumes": [*(pod_spec.get("volumes") or ()), *volumes(pcs_name)],
    }


def container(awaited_cliques: dict[str, int], image: str) -> dict[str, Any]:
    """Return the init container that waits for the cliques in `awaited_cliques`, which holds the number of Ready pods
    by clique (OBJ-630 to OBJ-632)."""
    return {
        "name": CONTAINER,
        "image": image,
        "args": [f"--podcliques={parent}:{minimum}" for parent, minimum in awaited_cliques.items()],
        "securityContext": RESTRICTED,
        "volumeMounts": [
            {"name": POD_INFO_VOLUME, "mountPath": POD_INFO_PATH, "readOnly": True},
            {"name": TOKEN_VOLUME, "mountPath": TOKEN_PATH, "readOnly": True},
        ],
    }


def volumes(pcs_name: str) -> list[dict[str, Any]]:
    """Return the volumes with the service account token, and with the namespace and gang of the pod itself."""
    files = {"namespace": "metadata.namespace", "podgangname": f"metadata.labels['{labels.PODGANG}']"}
    items = [{"path": path, "fieldRef": {"fieldPath": field}} for path, field in files.items()]
    return [
        {"name": TOKEN_VOLUME, "secret": {"secretName": names.token_secret(pcs_name), "defaultMode": 420}},
        {"name": POD_INFO_VOLUME, "downwardAPI": {"items": items}},
    ]
