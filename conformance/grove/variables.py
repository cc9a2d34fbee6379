"""The environment variables of a container as its process sees them, according to the kubelet's rules. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.grove.fields import Document, items, mapping, text

_ENTRY = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName")
_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")


def environment(container: Document, pod: Document) -> dict[str, str]:
    """Return the variables of a pod's container, in order, with their values: references to earlier variables in
    literals are expanded, and fields of the pod are resolved. If two variables have the same name, the last value
    counts."""
    values: dict[str, str] = {}
    for variable in items(container, "env"):
        path = text(variable, "valueFrom", "fieldRef", "fieldPath")
        values[text(variable, "name")] = _field(pod, path) if path else _expanded(text(variable, "value"), values)
    return values


def _field(pod: Document, path: str) -> str:
    if entry := _ENTRY.fullmatch(path):
        value = mapping(pod, "metadata", entry[1]).get(entry[2], "")
        return value if isinstance(value, str) else ""
    return text(pod, *path.split(".")) if path in _FIELDS else f"field {path}"


def _expanded(value: str, values: Mapping[str, str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        return "$" if match[1] is None else values.get(match[1], match[0])

    return _REFERENCE.sub(replacement, value)
