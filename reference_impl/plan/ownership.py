"""Whether an object belongs to an owner, and whether the owner may become its controller (spec OBJ-236, CHG-DEL-07,
decision 010). No other module compares controllers."""

from __future__ import annotations

from typing import Any

from kube.objects import Object
from reference_impl.api.models import PodGang, to_json
from reference_impl.plan import labels, names, timestamps

Manifest = dict[str, Any]


def owns(owner: Object, dependent: Object) -> bool:
    """Return whether the owner controls an object."""
    controller = dependent.metadata.controller
    return controller is not None and controller.uid == owner.metadata.uid


def replica_index(item: Object) -> str:
    """Return the index of the set's replica that an object belongs to, or an empty string if it is unknown. Gangs that
    are identified by indices have the index only in their name (OBJ-214)."""
    index = item.metadata.label(labels.REPLICA_INDEX)
    if index or not isinstance(item, PodGang):
        return index
    return names.replica_index_in_name(item.metadata.label(labels.PART_OF), item.metadata.name)


def has_expected_controller(manifest: Manifest, existing: Object) -> bool:
    """Return whether an object has the controller that its manifest names."""
    controller, expected = existing.metadata.controller, _controller(manifest)
    return controller is None if expected is None else controller is not None and controller.uid == expected["uid"]


def is_adoptable(manifest: Manifest, existing: Object) -> bool:
    """Return whether an object has lost its controller and has the labels of the manifest. Return False for a Secret,
    because a label does not make the token in it trustworthy (OBJ-236)."""
    return manifest["kind"] != "Secret" and _is_orphan_of(manifest, existing)


def is_replaceable(manifest: Manifest, existing: Object) -> bool:
    """Return whether a Secret has lost its controller and has the labels of the manifest, so that it is deleted and
    recreated."""
    return manifest["kind"] == "Secret" and _is_orphan_of(manifest, existing)


def _is_orphan_of(manifest: Manifest, existing: Object) -> bool:
    expected = manifest["metadata"]["labels"]
    return existing.metadata.controller is None and expected.items() <= (existing.metadata.labels or {}).items()


def _controller(manifest: Manifest) -> Manifest | None:
    return next(iter(manifest["metadata"].get("ownerReferences", ())), None)


def is_orphan(owner: Object, kind: str, existing: Object) -> bool:
    """Return whether an object that belongs to the owner by its labels or its controller's name has no living
    controller. The object has no controller, or its controller is an earlier object with the owner's name, as after a
    restore from a backup. An object that is not younger than its PodCliqueSet may come from an earlier set that was
    deleted with all its dependents; the garbage collector deletes it. Scaling groups and cliques delete their
    dependents before they are deleted themselves."""
    meta, controller = existing.metadata, existing.metadata.controller
    if meta.deletion_timestamp is not None:
        return False
    if controller is None:
        return meta.name.startswith(f"{owner.metadata.name}-")
    if (controller.kind, controller.name) != (kind, owner.metadata.name) or owns(owner, existing):
        return False
    if kind != "PodCliqueSet":
        return True
    created, owner_created = (timestamps.seconds(item.metadata.creation_timestamp) for item in (existing, owner))
    return created is not None and owner_created is not None and created > owner_created


def adoption_patch(reference: Manifest, existing: Object) -> dict[str, Any]:
    """Return the merge patch that makes an owner the controller of an object. Owners that are not controllers are
    kept."""
    other_owners = [to_json(owner) for owner in existing.metadata.owner_references or () if not owner.controller]
    return {"metadata": {"ownerReferences": [*other_owners, reference]}}
