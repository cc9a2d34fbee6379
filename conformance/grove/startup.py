"""The startup order of the cliques of a set (OBJ-601 … OBJ-607, OBJ-630 … OBJ-634). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.grove import labels, names
from conformance.grove.fields import Document, at, decimal, items, number, text
from conformance.grove.template import GroupTemplate, SetTemplate

IN_ORDER, EXPLICIT = "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"
WAITER = "grove-initc"
"""Name of the waiting init container."""


@dataclass(frozen=True)
class CliquePosition:
    """The position of a PodClique in its set: its template, its set replica, and its scaling group replica."""

    clique: str
    index: int
    group: GroupTemplate | None = None
    group_index: int = 0

    @property
    def is_scaled(self) -> bool:
        """Return whether the clique is part of a scaled gang."""
        return self.group is not None and self.group_index >= self.group.min_available


def clique_position(
    set_template: SetTemplate, clique_name: str, clique_labels: Mapping[str, str]
) -> CliquePosition | None:
    """Return the position of a PodClique, from its full name and the labels that it and its pods have; None if these do
    not fit the set."""
    index, group_index = (decimal(clique_labels.get(key, "")) for key in (labels.SET_INDEX, labels.GROUP_INDEX))
    if index is None:
        return None
    group_name = clique_labels.get(labels.GROUP, "")
    for group in set_template.groups:
        if group_name and group_name == names.scaling_group(set_template.name, index, group.name):
            for clique in group.cliques:
                if group_index is not None and clique_name == names.member_clique(group_name, group_index, clique):
                    return CliquePosition(clique, index, group, group_index)
            return None
    for template in set_template.standalone:
        if clique_name == names.clique(set_template.name, index, template.name):
            return CliquePosition(template.name, index)
    return None


def parents(set_template: SetTemplate, position: CliquePosition) -> dict[str, int] | None:
    """Return the full names of the parents of a clique, in order, each with the number of pods that must be Ready
    first.

    Return None if the specification leaves the parents open: in a scaled gang of a set with InOrder, if the clique's
    predecessor is not in the gang but an earlier clique is (OBJ-605).
    """
    if set_template.startup == EXPLICIT:
        predecessors = list(set_template.clique(position.clique).starts_after)
    elif set_template.startup == IN_ORDER:
        clique_names = [template.name for template in set_template.cliques]
        predecessors = clique_names[: clique_names.index(position.clique)][-1:]
        if position.is_scaled and position.group is not None and predecessors:
            earlier_members = set(clique_names[: clique_names.index(position.clique)]) & set(position.group.cliques)
            if predecessors[0] not in position.group.cliques and earlier_members:
                return None
    else:
        predecessors = []
    minimums: dict[str, int] = {}
    for name in predecessors:
        for full_name in _names_in_gang(set_template, position, name):
            minimums[full_name] = set_template.clique(name).min_available
    return minimums


def _names_in_gang(set_template: SetTemplate, position: CliquePosition, name: str) -> list[str]:
    """Return the full names of a template's cliques that `position` can wait for (OBJ-603, OBJ-606)."""
    group = next((group for group in set_template.groups if name in group.cliques), None)
    if group is None:
        return [] if position.is_scaled else [names.clique(set_template.name, position.index, name)]
    group_full_name = names.scaling_group(set_template.name, position.index, group.name)
    if position.is_scaled:
        same_group = position.group is not None and position.group.name == group.name
        return [names.member_clique(group_full_name, position.group_index, name)] if same_group else []
    return [names.member_clique(group_full_name, j, name) for j in range(group.min_available)]


def waiter(pod: Document) -> Document:
    """Return the waiting init container of a pod; an empty mapping if there is none."""
    return next(
        (container for container in items(pod, "spec", "initContainers") if text(container, "name") == WAITER), {}
    )


MOUNTS = {
    "/var/grove/pod-info": ("pod-info-vol", True),
    "/var/run/secrets/kubernetes.io/serviceaccount": ("sa-token-secret-vol", True),
}
"""Mount path → name of the volume, and whether the mount is read-only (OBJ-632)."""


def mounts(container: Document) -> dict[str, tuple[str, bool]]:
    """Return the mounts of a container in the form of MOUNTS."""
    return {
        text(mount, "mountPath"): (text(mount, "name"), at(mount, "readOnly") is True)
        for mount in items(container, "volumeMounts")
    }


def volumes(set_name: str) -> dict[str, object]:
    """Return the contents of the two volumes of a waiting pod, by name: the secret and its mode, or path → field
    (OBJ-632)."""
    return {
        "sa-token-secret-vol": (f"{set_name}-ic-sat", 420),
        "pod-info-vol": {"namespace": "metadata.namespace", "podgangname": f"metadata.labels['{labels.GANG}']"},
    }


def observed_volumes(pod: Document) -> dict[str, object]:
    """Return the Secret and downward API volumes of a pod in the form of `volumes`."""
    by_name: dict[str, object] = {}
    for volume in items(pod, "spec", "volumes"):
        if at(volume, "secret"):
            by_name[text(volume, "name")] = (
                text(volume, "secret", "secretName"),
                number(volume, "secret", "defaultMode"),
            )
        elif at(volume, "downwardAPI"):
            files = items(volume, "downwardAPI", "items")
            by_name[text(volume, "name")] = {text(file, "path"): text(file, "fieldRef", "fieldPath") for file in files}
    return by_name
