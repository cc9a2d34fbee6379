"""The cliques of a scaling group whose gangs come from a PodGangMap (spec COH-127, COH-210).

A replica of the group that moves to another gang is deleted and recreated under the same names; the new cliques wait
until the old ones have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reference_impl.api.models import PodClique, PodCliqueScalingGroup
from reference_impl.plan import labels, names
from reference_impl.plan.children import Manifest
from reference_impl.plan.coherent.layout import Entry


@dataclass(frozen=True)
class Difference:
    """Cliques to delete, cliques to correct with a merge patch, then cliques to create."""

    surplus: list[PodClique]
    relabelled: list[tuple[PodClique, Manifest]]
    missing: list[Manifest]


def difference(
    wanted: Mapping[str, Manifest],
    present: Mapping[str, PodClique],
    may_create: Callable[[Manifest], bool],
) -> Difference:
    """What brings the cliques of a group to their gangs. `wanted` are manifests by name. A clique that was created
    before there was a map still names a base gang, which may be deleted some day."""

    def misplaced(name: str, clique: PodClique) -> bool:
        manifest = wanted.get(name)
        return manifest is None or gang_of(manifest) != clique.metadata.label(labels.PODGANG)

    return Difference(
        [
            clique
            for name, clique in present.items()
            if clique.metadata.deletion_timestamp is None and misplaced(name, clique)
        ],
        [
            (clique, {"metadata": {"labels": {labels.BASE_PODGANG: None}}})
            for name, clique in present.items()
            if clique.metadata.label(labels.BASE_PODGANG) and not misplaced(name, clique)
        ],
        [manifest for name, manifest in wanted.items() if name not in present and may_create(manifest)],
    )


def in_place(
    placed: Mapping[int, Entry], present: Mapping[str, PodClique], group: PodCliqueScalingGroup
) -> dict[int, list[str]]:
    """Replica → its cliques, of the replicas all of whose cliques exist in the gang that should hold them. Of a large
    group, these are nearly all."""
    found: dict[int, list[str]] = {}
    for index, entry in placed.items():
        own = [names.member_clique(group.metadata.name, index, name) for name in group.spec.clique_names]
        if all(_holds(present.get(name), entry) for name in own):
            found[index] = own
    return found


def _holds(clique: PodClique | None, entry: Entry) -> bool:
    if clique is None or clique.metadata.label(labels.BASE_PODGANG):
        return False
    return clique.metadata.label(labels.PODGANG) == entry.name


def gang_of(manifest: Manifest) -> str:
    """The gang in a clique's manifest."""
    return str(manifest["metadata"]["labels"].get(labels.PODGANG, ""))
