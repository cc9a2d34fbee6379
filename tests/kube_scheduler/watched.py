"""The pods of a cluster, and the reports of kube-scheduler about them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from kube.client import Client
from kube.informer import Informer, typed_decoder
from kube.objects import ObjectMeta
from kube.resource import PODS
from tests.kube_scheduler.draw import Manifest


class Condition(msgspec.Struct):
    type: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(msgspec.Struct, rename="camel"):
    conditions: list[Condition] = []
    nominated_node_name: str = ""


class Pod(msgspec.Struct):
    metadata: ObjectMeta
    status: PodStatus

    @property
    def scheduled(self) -> Condition:
        """The condition PodScheduled, or an empty condition if the pod has none."""
        return next(
            (condition for condition in self.status.conditions if condition.type == "PodScheduled"), Condition()
        )


class WatchedPods:
    """All pods, kept up to date by a watch."""

    def __init__(self, client: Client) -> None:
        self._pods: Informer[Pod] = Informer(client, PODS, typed_decoder(Pod))
        self._changed = asyncio.Event()
        self._pods.add_handler(lambda *_: self._changed.set())

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[WatchedPods]:
        task = asyncio.create_task(self._pods.run())
        try:
            await self._pods.wait_until_synced()
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def decided(self, manifests: Sequence[Manifest]) -> list[Pod]:
        """Wait until kube-scheduler has tried to schedule all these pods."""
        keys = [(manifest["metadata"]["namespace"], manifest["metadata"]["name"]) for manifest in manifests]
        while True:
            pods = [pod for key in keys if (pod := self._pods.get(*key)) is not None and pod.scheduled.type]
            if len(pods) == len(keys):
                return pods
            self._changed.clear()
            await self._changed.wait()
