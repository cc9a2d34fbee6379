"""The difference between an existing object and its manifest (spec OBJ-243)."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from kube.objects import Object
from reference_impl.api import models
from reference_impl.plan import ownership
from reference_impl.plan.children import Manifest

_ATOMIC_FIELDS = ("selector", "rules", "subjects", "roleRef")
"""Fields that are compared as a whole, because the API server adds no defaults to them."""


def correction(manifest: Manifest, existing: Object) -> Manifest:
    """Return the merge patch that corrects the object, or an empty dict if it matches. Additions by other clients
    (labels, defaults) are kept. Fields that the model lacks are immutable and are not compared."""
    current = models.to_json(existing)
    fields = msgspec.structs.fields(cast(msgspec.Struct, existing))
    compared = {field.encode_name for field in fields} - {"metadata", "status"}
    body: Manifest = {}
    for key, value in manifest.items():
        if key in compared:
            body |= _differences({key: value}, current)
    metadata = {key: manifest["metadata"][key] for key in ("labels", "annotations") if key in manifest["metadata"]}
    if tags := _differences(metadata, current["metadata"]):
        body["metadata"] = tags
    if not ownership.has_expected_controller(manifest, existing):
        body.setdefault("metadata", {})["ownerReferences"] = manifest["metadata"]["ownerReferences"]
    return body


def _differences(desired: Manifest, current: Manifest) -> Manifest:
    body: Manifest = {}
    for key, value in desired.items():
        current_value = current.get(key)
        if isinstance(value, dict) and isinstance(current_value, dict):
            inner = _differences(value, current_value)
            if key in _ATOMIC_FIELDS:
                inner |= {field: None for field in current_value if field not in value}
            if inner:
                body[key] = inner
        elif not (value == current_value if key in _ATOMIC_FIELDS else _contains(value, current_value)):
            body[key] = value
    return body


def _contains(desired: Any, current: Any) -> bool:
    """Return whether the current value contains the desired one; the API server may have added defaults."""
    if isinstance(desired, dict) and isinstance(current, dict):
        return all(_contains(value, current.get(key)) for key, value in desired.items())
    if isinstance(desired, list) and isinstance(current, list):
        return len(desired) == len(current) and all(map(_contains, desired, current))
    return bool(desired == current)
