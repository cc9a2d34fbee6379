"""The fields that a pod needs to be admitted under the Pod Security Standard "restricted", which many clusters
enforce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

POD_DEFAULTS: Mapping[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_DEFAULTS: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def restricted(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod spec that the standard admits, unless the spec itself requests more privileges."""

    def with_context(holder: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        return {**holder, "securityContext": {**defaults, **(holder.get("securityContext") or {})}}

    fields = [field for field in ("initContainers", "containers") if field in spec]
    containers = {field: [with_context(container, CONTAINER_DEFAULTS) for container in spec[field]] for field in fields}
    return with_context({**spec, **containers}, POD_DEFAULTS)
