"""Events (events.k8s.io/v1) about objects, posted by the operator and the scheduler."""

from __future__ import annotations

import logging
from typing import Any, Literal

from kube.client import Client
from kube.errors import REQUEST_FAILED
from kube.objects import ObjectMeta
from kube.resource import EVENTS, Resource
from reference_impl.runtime.clock import now_with_microseconds

log = logging.getLogger(__name__)

MAX_NOTE_LENGTH = 1024
"""Maximum length of a note in characters; the API server rejects longer notes."""
EventType = Literal["Normal", "Warning"]


class EventRecorder:
    """Posts events as one reporting controller."""

    def __init__(self, client: Client, controller: str) -> None:
        self._client, self._controller = client, controller

    async def post(
        self, regarding: Resource, meta: ObjectMeta, kind: EventType, reason: str, note: str, *, action: str
    ) -> None:
        """Post an event. The exceptions of the request propagate."""
        manifest = event(
            regarding,
            meta,
            kind=kind,
            reason=reason,
            action=action,
            note=note,
            controller=self._controller,
            timestamp=now_with_microseconds(),
        )
        await self._client.create(EVENTS, manifest)

    async def record(
        self, regarding: Resource, meta: ObjectMeta, kind: EventType, reason: str, note: str, *, action: str
    ) -> None:
        """Post an event. If the request fails, only log the failure."""
        try:
            await self.post(regarding, meta, kind, reason, note, action=action)
        except REQUEST_FAILED as error:
            log.info("event %s of %s/%s was not posted: %s", reason, meta.namespace, meta.name, error)


def event(
    regarding: Resource,
    meta: ObjectMeta,
    *,
    kind: EventType,
    reason: str,
    action: str,
    note: str,
    controller: str,
    timestamp: str,
) -> dict[str, Any]:
    """Return the manifest of an event about an object. `timestamp` has microseconds."""
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
        "note": note[:MAX_NOTE_LENGTH],
        "regarding": {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
        },
    }
