"""The cliques of a scaling group and their gangs (spec OBJ-320, COH-127, COH-210).

A scaling group replica that moves to another gang is deleted and recreated under the same names. The new cliques are
created only after the old cliques have been removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from reference_impl.api.models import PodClique, PodCliqueScalingGroup
from reference_impl.plan import labels, names
from reference_impl.plan.children import Manifest
from reference_impl.plan.lines import Placement


@dataclass(frozen=True)
class CliqueDifference:
    """The cliques to delete and the cliques to create, in this order."""

    surplus: list[PodClique]
    missing: list[Manifest]


def difference(
    desired: Mapping[str, Manifest], present: Mapping[str, PodClique], may_create: Callable[[Manifest], bool]
) -> CliqueDifference:
    """Return the cliques to delete and to create so that the cliques of a scaling group are in their gangs. `desired`
    holds manifests by name."""

    def misplaced(name: str, clique: PodClique) -> bool:
        manifest = desired.get(name)
        return manifest is None or gang_of(manifest) != clique.metadata.label(labels.PODGANG)

    return CliqueDifference(
        [
            clique
            for name, clique in present.items()
            if clique.metadata.deletion_timestamp is None and misplaced(name, clique)
        ],
        [manifest for name, manifest in desired.items() if name not in present and may_create(manifest)],
    )


def replicas_in_place(
    placement: Placement,
    config: str,
    indices: Iterable[int],
    present: Mapping[str, PodClique],
    group: PodCliqueScalingGroup,
) -> dict[int, list[str]]:
    """Return, for each replica whose cliques all exist in the gang that should hold them, the names of its cliques. In
    a large scaling group, nearly all replicas are in place."""
    complete: dict[int, list[str]] = {}
    for index in indices:
        gang = placement.gang_of(config, index)
        clique_names = [names.member_clique(group.metadata.name, index, name) for name in group.spec.clique_names]
        if all(name in present and present[name].metadata.label(labels.PODGANG) == gang for name in clique_names):
            complete[index] = clique_names
    return complete


def gang_of(manifest: Manifest) -> str:
    """Return the gang that a clique's manifest names."""
    return str(manifest["metadata"]["labels"].get(labels.PODGANG, ""))
