"""Failures and repairs of GPUs that are devices, by an annotation of their node (`gpu_devices.FAILED`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from tenacity import AsyncRetrying, RetryError, retry_if_exception, retry_if_result, stop_after_attempt, wait_fixed

from conformance.cluster import gpu_devices, pace
from conformance.cluster.gpu_devices import DeviceFailure
from conformance.errors import HarnessError, UsageError
from conformance.grove.kinds import RESOURCE_SLICES
from conformance.suggestions import suggestion
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NODES

_MAX_CONFLICTS = 10


async def change(client: Client, node: str, device: str, failure: DeviceFailure | None, *, location: str = "") -> None:
    """Make a device fail, or repair it if `failure` is None, and return when the node's slices say so. `location` names
    the caller in messages. Raises UsageError if the node or the device does not exist, or HarnessError if the slices do
    not follow."""

    async def write() -> None:
        existing = {item["metadata"]["name"]: item for item in await client.list(NODES)}
        if node not in existing:
            hint = suggestion(node, existing) if existing else "the cluster has no nodes"
            raise UsageError(f"unknown node {node!r}", where=location or "NODE", hint=hint)
        metadata = existing[node]["metadata"]
        require_device(node, metadata.get("annotations"), device, location=location or "DEVICE")
        annotation = gpu_devices.with_failure(metadata.get("annotations"), device, failure)
        version = metadata["resourceVersion"]  # another failure of the same node must not be lost
        change = {"resourceVersion": version, "annotations": {gpu_devices.FAILED: annotation}}
        await client.patch(NODES, None, node, {"metadata": change})

    await AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, ApiError) and error.conflict),
        stop=stop_after_attempt(_MAX_CONFLICTS),
        wait=wait_fixed(0.1),
        reraise=True,
    )(write)

    async def differs() -> bool:
        metadata = orjson.loads(await client.get(NODES, None, node))["metadata"]
        return not are_published(await client.list(RESOURCE_SLICES), node, metadata.get("annotations"))

    try:
        await AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.1), stop=pace.stop_after(20))(differs)
    except RetryError:
        problem = f"the slice of {node} does not say so after 20 s"
        raise HarnessError(problem, where=f"device {device}") from None


def require_device(node: str, annotations: Mapping[str, str] | None, device: str, *, location: str) -> None:
    """Raise UsageError unless a node offers a device of this name."""
    names = gpu_devices.device_names(annotations)
    if not names:
        hint = "add nodes with --gpus devices"
        raise UsageError(f"node {node} does not offer its GPUs as devices", where=location, hint=hint)
    if device not in names:
        raise UsageError(f"node {node} has no device {device!r}", where=location, hint=suggestion(device, names))


def are_published(slices: Iterable[Any], node: str, annotations: Mapping[str, str] | None) -> bool:
    """Return whether the devices of a node have the taints in its slices that its annotations demand."""
    taints = {
        device["name"]: [
            {key: taint[key] for key in taint if key != "timeAdded"} for taint in device.get("taints") or ()
        ]
        for item in slices
        if item["spec"].get("nodeName") == node
        and gpu_devices.is_slice_of(item["metadata"]["name"], item["spec"]["pool"]["name"], item["spec"]["driver"])
        for device in item["spec"].get("devices") or ()
    }
    return taints == gpu_devices.device_taints(annotations)
