"""The difference between an existing object and its manifest (spec OBJ-243)."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from kube.objects import Object
from reference_impl.api import models
from reference_impl.plan import ownership
from reference_impl.plan.children import Manifest

_WHOLE = ("selector", "rules", "subjects", "roleRef")
"""Fields compared as a whole: the API server adds no defaults to them."""


def correction(manifest: Manifest, found: Object) -> Manifest:
    """The merge patch that corrects the object; empty if it matches. Additions of others (labels, defaults) are
    kept. A field that the object's type leaves out cannot be changed, and is not compared."""
    seen = models.wire(found)
    fields = msgspec.structs.fields(cast(msgspec.Struct, found))
    compared = {field.encode_name for field in fields} - {"metadata", "status"}
    body: Manifest = {}
    for key, value in manifest.items():
        if key in compared:
            body |= _differing({key: value}, seen)
    metadata = {key: manifest["metadata"][key] for key in ("labels", "annotations") if key in manifest["metadata"]}
    if tags := _differing(metadata, seen["metadata"]):
        body["metadata"] = tags
    if not ownership.owned(manifest, found):
        body.setdefault("metadata", {})["ownerReferences"] = manifest["metadata"]["ownerReferences"]
    return body


def _differing(wanted: Manifest, seen: Manifest) -> Manifest:
    body: Manifest = {}
    for key, value in wanted.items():
        have = seen.get(key)
        if isinstance(value, dict) and isinstance(have, dict):
            inner = _differing(value, have)
            if key in _WHOLE:
                inner |= {extra: None for extra in have if extra not in value}
            if inner:
                body[key] = inner
        elif not (value == have if key in _WHOLE else _within(value, have)):
            body[key] = value
    return body


def _within(wanted: Any, have: Any) -> bool:
    """Whether everything wanted exists; the API server may have added defaults."""
    if isinstance(wanted, dict) and isinstance(have, dict):
        return all(_within(value, have.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(have, list):
        return len(wanted) == len(have) and all(map(_within, wanted, have))
    return bool(wanted == have)
