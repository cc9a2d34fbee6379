"""Redact what is kept of a cluster, so that it can be shown to anybody: neither the data of Secrets, in whatever form,
nor tokens and private keys in texts, nor, of a cluster in use, what its pods run.

A redacted Secret keeps its keys, and whether they have a value, for checks that need that.
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
"""Annotations that contain the whole object once more."""


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


_POD = {
    "metadata": ("name", "namespace", "uid", "labels", "resourceVersion", "creationTimestamp", "deletionTimestamp"),
    "spec": ("nodeName", "schedulerName", "schedulingGates", "overhead", "resources", "priority"),
    "status": ("phase", "conditions"),
}
"""What rules about placement read of a pod, besides the resources of its containers."""


def placement(raw: bytes) -> bytes:
    """Return the bytes of a pod with what rules about placement read: no images, commands, environments or volumes."""
    pod = orjson.loads(raw)
    kept = {part: {key: pod[part][key] for key in keys if key in pod.get(part, {})} for part, keys in _POD.items()}
    for kind in ("containers", "initContainers"):
        if found := pod.get("spec", {}).get(kind):
            shown = ("name", "resources", "restartPolicy")
            kept["spec"][kind] = [{key: each[key] for key in shown if key in each} for each in found]
    return orjson.dumps(kept)


def node(raw: bytes) -> bytes:
    """Return the bytes of a node with what rules about placement read: names, labels, taints and capacity."""
    found = orjson.loads(raw)
    metadata, spec, status = (found.get(part, {}) for part in ("metadata", "spec", "status"))
    shown = ("name", "uid", "labels", "resourceVersion", "creationTimestamp")
    return orjson.dumps(
        {
            "metadata": {key: metadata[key] for key in shown if key in metadata},
            "spec": {key: spec[key] for key in ("taints", "unschedulable") if key in spec},
            "status": {key: status[key] for key in ("allocatable", "capacity") if key in status},
        }
    )


def value(found: Any) -> Any:
    """Return a JSON value with each Secret in it and each credential in its texts redacted."""
    if isinstance(found, str):
        return credentials.text(found)
    if isinstance(found, Mapping):
        shown = secret(found) if found.get("kind") == "Secret" else found
        return {key: value(each) for key, each in shown.items()}
    return [value(each) for each in found] if isinstance(found, list) else found
