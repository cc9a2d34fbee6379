"""Writes that lack a field when they arrive, as if it had been lost in transit."""

from __future__ import annotations

from typing import Any

import orjson

from kube import nesting


def corrupt(body: bytes) -> bytes:
    """Return the body of a write without one part: its owner references or, if it has none, a label, an entry of
    spec.entries, or a number in the status. A body that has none of these parts, or is not a JSON object, is returned
    unchanged."""
    try:
        document = orjson.loads(nesting.limit_depth(body, "a write"))
    except orjson.JSONDecodeError:
        return body
    if not isinstance(document, dict):
        return body
    return orjson.dumps(document) if _remove_part(document) else body


def _remove_part(document: dict[str, Any]) -> bool:
    metadata = document.get("metadata") or {}
    if metadata.pop("ownerReferences", None):
        return True
    if labels := metadata.get("labels"):
        del labels[max(labels)]
        return True
    spec = document.get("spec") or {}
    if entries := spec.get("entries"):
        del entries[-1 if isinstance(entries, list) else max(entries)]
        return True
    status = document.get("status") or {}
    for key in sorted(status):
        if isinstance(status[key], int) and not isinstance(status[key], bool):
            del status[key]
            return True
    return False
