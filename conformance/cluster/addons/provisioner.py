"""Creates and deletes the volumes of claims, by the pure rules in `volumes`. Part of the process `startup-order`.

The controller manager does the rest: it requests a volume, binds it to its claim, and releases it. On a cluster without
claims, the provisioner costs two idle watches.
"""

from __future__ import annotations

import asyncio

import orjson

from conformance.cluster.addons import volumes
from conformance.cluster.addons.volumes import (
    CLAIMS,
    SELECTED_NODE_ANNOTATION,
    STORAGE_CLASSES,
    VOLUMES,
    Volume,
    VolumeClaim,
)
from kube.client import Client
from kube.errors import ApiError
from kube.informer import Informer, typed_decoder
from kube.objects import Key
from kube.resource import NODES
from kube.workqueue import WorkQueue, work

_WRITERS = 4


class Provisioner:
    """The claims that request volumes, and the volumes that are no longer used."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._claims = Informer(client, CLAIMS, typed_decoder(VolumeClaim))
        self._volumes = Informer(client, VOLUMES, typed_decoder(Volume))
        self._claim_queue: WorkQueue[Key] = WorkQueue()
        self._volume_queue: WorkQueue[Key] = WorkQueue()
        self._claims.add_handler(self._on_claim)
        self._volumes.add_handler(self._on_volume)

    async def run(self) -> None:
        """Provision volumes until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            group.create_task(self._volumes.run())
            group.create_task(work(self._claim_queue, self._provision, _WRITERS))
            group.create_task(work(self._volume_queue, self._delete, _WRITERS))

    def _on_claim(self, event_type: str, old: VolumeClaim | None, claim: VolumeClaim) -> None:
        if event_type != "DELETED" and claim.needs_volume:
            self._claim_queue.add(claim.metadata.key)

    def _on_volume(self, event_type: str, old: Volume | None, volume: Volume) -> None:
        if event_type != "DELETED" and volume.is_unused:
            self._volume_queue.add(volume.metadata.key)

    async def _provision(self, key: Key) -> float | None:
        claim = self._claims.get(*key)
        if claim is None or not claim.needs_volume:
            return None
        stored = await self._client.get_or_none(STORAGE_CLASSES, None, claim.spec.get("storageClassName") or "-")
        if stored is None:
            return None
        storage_class = orjson.loads(stored)
        labels: dict[str, str] = {}
        if volumes.waits_for_consumer(storage_class):
            if not claim.selected_node:
                return None
            node = await self._client.get_or_none(NODES, None, claim.selected_node)
            if node is None:  # the scheduler then selects another node
                await self._client.patch(CLAIMS, *key, {"metadata": {"annotations": {SELECTED_NODE_ANNOTATION: None}}})
                return None
            labels = orjson.loads(node)["metadata"].get("labels") or {}
        try:
            await self._client.create(VOLUMES, volumes.volume(claim, storage_class, labels))
        except ApiError as error:
            if not error.already_exists:
                raise
        return None

    async def _delete(self, key: Key) -> float | None:
        volume = self._volumes.get(*key)
        if volume is not None and volume.is_unused:
            await self._client.delete(VOLUMES, None, volume.metadata.name, uid=volume.metadata.uid)
        return None
