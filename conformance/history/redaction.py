"""Redact the records of a cluster so that they can be published. Redacted records contain no Secret data in any form,
and no tokens or private keys in texts. Redacted records of a production cluster also contain no information about the
programs that its pods run.

A redacted Secret keeps its keys, and still shows which keys have a value, for checks that need this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from conformance import credentials

HIDDEN = "UkVEQUNURUQ="
"""`REDACTED` in base64, so that the data of a Secret can still be decoded."""
_DATA = ("data", "stringData")
_COPIES = ("kubectl.kubernetes.io/last-applied-configuration",)
"""Annotations that contain a copy of the whole object."""


def record(raw: bytes) -> bytes:
    """Return a Secret, as JSON bytes, without its data."""
    return orjson.dumps(secret(orjson.loads(raw)))


def secret(original: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Secret, or a patch of one, without its data."""
    redacted = dict(original)
    for field in _DATA:
        if isinstance(values := original.get(field), Mapping):
            redacted[field] = {key: value and HIDDEN for key, value in values.items()}
    metadata = original.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if isinstance(metadata, Mapping) and isinstance(annotations, Mapping):
        copies = dict.fromkeys(annotations.keys() & set(_COPIES), "REDACTED")
        redacted["metadata"] = {**metadata, "annotations": {**annotations, **copies}}
    return redacted


_POD = {
    "metadata": ("name", "namespace", "uid", "labels", "resourceVersion", "creationTimestamp", "deletionTimestamp"),
    "spec": ("nodeName", "schedulerName", "schedulingGates", "overhead", "resources", "priority"),
    "status": ("phase", "conditions"),
}
"""The fields of a pod that placement rules read, in addition to the resources of its containers."""


def placement(raw: bytes) -> bytes:
    """Return a pod as JSON bytes, reduced to the fields that placement rules read: without images, commands,
    environment variables or volumes."""
    pod = orjson.loads(raw)
    reduced = {part: {key: pod[part][key] for key in keys if key in pod.get(part, {})} for part, keys in _POD.items()}
    for field in ("containers", "initContainers"):
        if containers := pod.get("spec", {}).get(field):
            fields = ("name", "resources", "restartPolicy")
            reduced["spec"][field] = [
                {key: container[key] for key in fields if key in container} for container in containers
            ]
    return orjson.dumps(reduced)


def node(raw: bytes) -> bytes:
    """Return a node as JSON bytes, reduced to the fields that placement rules read: names, labels, taints and
    capacity."""
    document = orjson.loads(raw)
    metadata, spec, status = (document.get(part, {}) for part in ("metadata", "spec", "status"))
    fields = ("name", "uid", "labels", "resourceVersion", "creationTimestamp")
    return orjson.dumps(
        {
            "metadata": {key: metadata[key] for key in fields if key in metadata},
            "spec": {key: spec[key] for key in ("taints", "unschedulable") if key in spec},
            "status": {key: status[key] for key in ("allocatable", "capacity") if key in status},
        }
    )


def value(original: Any) -> Any:
    """Return a JSON value in which each Secret, and each credential in a text, is redacted."""
    if isinstance(original, str):
        return credentials.redact(original)
    if isinstance(original, Mapping):
        redacted = secret(original) if original.get("kind") == "Secret" else original
        return {key: value(item) for key, item in redacted.items()}
    return [value(item) for item in original] if isinstance(original, list) else original
