"""Events, as the API server takes them (events.k8s.io/v1)."""

from __future__ import annotations

from typing import Any, Literal

from kube.objects import ObjectMeta
from kube.resource import EVENTS, Resource

NOTE_LENGTH = 1024
"""Characters of a note that the API server accepts."""


def event(
    regarding: Resource,
    meta: ObjectMeta,
    *,
    kind: Literal["Normal", "Warning"],
    reason: str,
    action: str,
    note: str,
    controller: str,
    timestamp: str,
) -> dict[str, Any]:
    """The manifest of an event about an object. `moment` is a time with microseconds."""
    return {
        "apiVersion": EVENTS.api_version,
        "kind": "Event",
        "metadata": {"generateName": f"{meta.name}-", "namespace": meta.namespace},
        "eventTime": timestamp,
        "reportingController": controller,
        "reportingInstance": controller,
        "type": kind,
        "reason": reason,
        "action": action,
        "note": note[:NOTE_LENGTH],
        "regarding": {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
        },
    }
