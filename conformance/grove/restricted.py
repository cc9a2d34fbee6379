"""Fields that a pod needs so that the Pod Security Standard "restricted" admits it: many clusters enforce it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

POD: Mapping[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def restricted(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod spec that the standard admits, unless the spec itself asks for more."""

    def context(holder: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        return {**holder, "securityContext": {**defaults, **(holder.get("securityContext") or {})}}

    kinds = [kind for kind in ("initContainers", "containers") if kind in spec]
    containers = {kind: [context(container, CONTAINER) for container in spec[kind]] for kind in kinds}
    return context({**spec, **containers}, POD)
