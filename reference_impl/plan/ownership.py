"""Whether an object belongs to an owner, and whether the owner may become its controller (spec OBJ-236, CHG-DEL-07,
decision 010). Nothing else compares controllers."""

from __future__ import annotations

from typing import Any

from kube.objects import Object
from reference_impl.api.models import PodGang, wire
from reference_impl.plan import labels, names, timestamps

Manifest = dict[str, Any]


def owns(owner: Object, found: Object) -> bool:
    """Whether the owner controls an object."""
    controller = found.metadata.controller
    return controller is not None and controller.uid == owner.metadata.uid


def replica_index(found: Object) -> str:
    """The index of the replica of its set that an object belongs to; empty if it does not say. Gangs that are known by
    indices have it in their names alone (OBJ-214)."""
    index = found.metadata.label(labels.REPLICA_INDEX)
    if index or not isinstance(found, PodGang):
        return index
    return names.index_in_gang(found.metadata.label(labels.PART_OF), found.metadata.name)


def owned(manifest: Manifest, found: Object) -> bool:
    """Whether an object has the controller that its manifest names."""
    controller, wanted = found.metadata.controller, _controller(manifest)
    return controller is None if wanted is None else controller is not None and controller.uid == wanted["uid"]


def adoptable(manifest: Manifest, found: Object) -> bool:
    """Whether an object has lost its controller and has the labels of the manifest. Never true for a Secret: whoever
    can put a token there must not be trusted because of a label (OBJ-236)."""
    return manifest["kind"] != "Secret" and _abandoned_as(manifest, found)


def replaceable(manifest: Manifest, found: Object) -> bool:
    """Whether a Secret has lost its controller and has the labels of the manifest: it is deleted and created again."""
    return manifest["kind"] == "Secret" and _abandoned_as(manifest, found)


def _abandoned_as(manifest: Manifest, found: Object) -> bool:
    wanted = manifest["metadata"]["labels"]
    return found.metadata.controller is None and wanted.items() <= (found.metadata.labels or {}).items()


def _controller(manifest: Manifest) -> Manifest | None:
    return next(iter(manifest["metadata"].get("ownerReferences", ())), None)


def abandoned(owner: Object, kind: str, found: Object) -> bool:
    """Whether nothing that lives controls an object that its labels or its controller's name assign to the owner: it
    has no controller, or that of an earlier object of the owner's name, as after a restore from a backup. What is not
    younger than its PodCliqueSet may have been made for an earlier one that was deleted with all it has, and is left to
    the garbage collector. Scaling groups and cliques delete what they control before they go."""
    meta, controller = found.metadata, found.metadata.controller
    if meta.deletion_timestamp is not None:
        return False
    if controller is None:
        return meta.name.startswith(f"{owner.metadata.name}-")
    if (controller.kind, controller.name) != (kind, owner.metadata.name) or owns(owner, found):
        return False
    if kind != "PodCliqueSet":
        return True
    created, before = (timestamps.seconds(each.metadata.creation_timestamp) for each in (found, owner))
    return created is not None and before is not None and created > before


def adoption(reference: Manifest, found: Object) -> dict[str, Any]:
    """The merge patch that makes an owner the controller of an object. Owners that are no controllers stay."""
    others = [wire(each) for each in found.metadata.owner_references or () if not each.controller]
    return {"metadata": {"ownerReferences": [*others, reference]}}
