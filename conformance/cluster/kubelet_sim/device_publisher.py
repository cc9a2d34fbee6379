"""Publishes the devices of nodes, as NVIDIA's drivers for GPUs and ComputeDomains do on each node: the ResourceSlices
of nodes whose GPUs are devices or whose profile lists devices, and what else the driver brings once there is such a
node. Part of the process `startup-order`.

The garbage collector deletes the slices of a deleted node. A slice that was deleted or changed is written again, and
slices beyond those that a node needs are deleted. On a cluster without such nodes, the publisher sends no request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from conformance.cluster import compute_domains, gpu_devices
from conformance.cluster.nodes import Manifest
from conformance.grove.kinds import DEVICE_CLASSES, RESOURCE_SLICES
from kube.client import Client
from kube.errors import ApiError
from kube.informer import Informer, typed_decoder
from kube.objects import ObjectMeta
from kube.resource import CRDS, Resource
from kube.workqueue import WorkQueue, work

_WRITERS = 8
_NODE = "node"


class PublishedSlice(msgspec.Struct):
    """A ResourceSlice. `spec` is compared with the one that the node should have."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}

    @property
    def node(self) -> str:
        """Return the node that can use the devices."""
        return str(self.spec.get("nodeName", ""))

    @property
    def is_published(self) -> bool:
        """Return whether the slice is one of those that are published here, judging by its name."""
        pool = str(self.spec.get("pool", {}).get("name", ""))
        return bool(self.node) and gpu_devices.is_slice_of(self.metadata.name, pool, str(self.spec.get("driver", "")))


@dataclass(frozen=True)
class DeviceDriver:
    """A driver of devices. `selector` selects the fields of its slices, `slices` returns the slices of a node,
    `has_devices` whether the node has any, and `objects` what the driver brings besides, with its kind."""

    selector: str
    has_devices: Callable[[ObjectMeta], bool]
    slices: Callable[[ObjectMeta], Sequence[Manifest]]
    objects: Callable[[], Iterable[tuple[Resource, Manifest]]]


GPU_DRIVER = DeviceDriver(
    f"spec.driver!={compute_domains.DRIVER}",
    lambda node: gpu_devices.offers_devices(node.annotations),
    lambda node: gpu_devices.slice_manifests(node.name, node.uid, node.annotations),
    lambda: [(DEVICE_CLASSES, manifest) for manifest in gpu_devices.class_manifests()],
)
"""The driver for GPUs, and the drivers of all devices that profiles list."""
DOMAIN_DRIVER = DeviceDriver(
    f"spec.driver={compute_domains.DRIVER}",
    compute_domains.has_fabric,
    compute_domains.slice_manifests,
    lambda: [(CRDS, compute_domains.crd_manifest())],
)


class DevicePublisher:
    """The slices of one driver. `nodes` may hold any model of nodes."""

    def __init__(self, client: Client, nodes: Informer[Any], driver: DeviceDriver) -> None:
        """Must be called before `nodes` runs."""
        self._client, self._nodes, self._driver = client, nodes, driver
        self._slices = Informer(client, RESOURCE_SLICES, typed_decoder(PublishedSlice), field_selector=driver.selector)
        self._slices.add_handler(self._on_slice)
        self._slices.add_index(_NODE, lambda item: [item.node] if item.is_published else [])
        self._queue: WorkQueue[str] = WorkQueue()
        self._device_node_event = asyncio.Event()
        nodes.add_handler(self._on_node)

    async def run(self) -> None:
        """Publish devices until cancelled."""
        await self._device_node_event.wait()
        for resource, manifest in self._driver.objects():
            try:
                await self._client.create(resource, manifest)
            except ApiError as error:
                if not error.already_exists:
                    raise
        async with asyncio.TaskGroup() as group:
            group.create_task(self._slices.run())
            await self._slices.wait_until_synced()
            group.create_task(work(self._queue, self._publish, _WRITERS))

    def _on_node(self, event_type: str, old: Any, node: Any) -> None:
        if event_type != "DELETED" and self._driver.has_devices(node.metadata):
            self._device_node_event.set()
            self._queue.add(node.metadata.name)

    def _on_slice(self, event_type: str, old: PublishedSlice | None, item: PublishedSlice) -> None:
        if item.is_published:
            self._queue.add(item.node)

    async def _publish(self, name: str) -> float | None:
        node = self._nodes.get("", name)
        if node is None or node.metadata.deletion_timestamp is not None:
            return None
        stored = {item.metadata.name: item for item in self._slices.indexed(_NODE, name)}
        specs = [item.spec for item in stored.values()]
        manifests = gpu_devices.with_generations(self._driver.slices(node.metadata), specs)
        for manifest in manifests:
            await self._write(manifest, stored.get(manifest["metadata"]["name"]))
        for slice_name in gpu_devices.surplus_slices({key: item.spec for key, item in stored.items()}, manifests):
            await self._client.delete(RESOURCE_SLICES, None, slice_name)
        return None

    async def _write(self, manifest: Manifest, stored: PublishedSlice | None) -> None:
        if stored is None:
            answer = await self._client.create(RESOURCE_SLICES, manifest)
        elif stored.spec != (spec := gpu_devices.with_times(manifest["spec"], stored.spec)):
            meta = {"resourceVersion": stored.metadata.resource_version}
            change = {"metadata": meta, "spec": {**dict.fromkeys(stored.spec), **spec}}
            answer = await self._client.patch(RESOURCE_SLICES, None, stored.metadata.name, change)
        else:
            return
        self._slices.observe(self._slices.decode(answer))
