"""Redact what is kept of a cluster, so that it can be shown to anybody: neither the data of Secrets, in whatever form,
nor service account tokens in the output of programs.

A redacted Secret keeps its keys, and whether they have a value, for checks that need that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

HIDDEN = "UkVEQUNURUQ="
"""`REDACTED` in base64, so that the data of a Secret can still be decoded."""
_DATA = ("data", "stringData")
_COPIES = ("kubectl.kubernetes.io/last-applied-configuration",)
"""Annotations that contain the whole object once more."""
_TOKEN = re.compile(r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}", re.ASCII)
"""A JSON web token: header and claims begin with `{"`, which is `eyJ` in base64."""
_TOKEN_BYTES = re.compile(_TOKEN.pattern.encode(), re.ASCII)


def record(raw: bytes) -> bytes:
    """Return the bytes of a Secret without its data."""
    return orjson.dumps(secret(orjson.loads(raw)))


def secret(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Secret, or a patch of one, without its data."""
    shown = dict(found)
    for field in _DATA:
        if isinstance(values := found.get(field), Mapping):
            shown[field] = {key: value and HIDDEN for key, value in values.items()}
    metadata = found.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if isinstance(metadata, Mapping) and isinstance(annotations, Mapping):
        copies = dict.fromkeys(annotations.keys() & set(_COPIES), "REDACTED")
        shown["metadata"] = {**metadata, "annotations": {**annotations, **copies}}
    return shown


def value(found: Any) -> Any:
    """Return a JSON value with each Secret in it and each token in its texts redacted."""
    if isinstance(found, str):
        return _TOKEN.sub("REDACTED", found)
    if isinstance(found, Mapping):
        shown = secret(found) if found.get("kind") == "Secret" else found
        return {key: value(each) for key, each in shown.items()}
    return [value(each) for each in found] if isinstance(found, list) else found


def words(said: bytes) -> bytes:
    """Return the output of a program without tokens."""
    return _TOKEN_BYTES.sub(b"REDACTED", said)
