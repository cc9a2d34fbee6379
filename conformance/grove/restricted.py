"""The fields that a pod needs to be admitted under the Pod Security Standard "restricted", which many clusters
enforce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

POD: Mapping[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def restricted(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod spec that the standard admits, unless the spec itself requests more privileges."""

    def context(holder: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        return {**holder, "securityContext": {**defaults, **(holder.get("securityContext") or {})}}

    fields = [field for field in ("initContainers", "containers") if field in spec]
    containers = {field: [context(container, CONTAINER) for container in spec[field]] for field in fields}
    return context({**spec, **containers}, POD)
