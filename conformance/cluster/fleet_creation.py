"""Creation of requested nodes on a cluster, with the DeviceClasses of their fleet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conformance.cluster import gpu_devices, nodes
from conformance.cluster.device_pools import POOLS
from conformance.cluster.nodes import Manifest
from conformance.errors import UsageError
from conformance.grove.kinds import DEVICE_CLASSES, RESOURCE_SLICES
from kube.client import Client
from kube.errors import ApiError


async def create(
    client: Client, requested_nodes: Sequence[Manifest], classes: Iterable[Manifest], *, location: str
) -> None:
    """Create DeviceClasses and nodes, and return when pods can be bound to the nodes. A class that exists is left
    alone. `location` names the argument in messages. Raises UsageError if the API server rejects an object, for example
    because a selector does not compile, or HarnessError if the nodes do not become schedulable."""
    for device_class in classes:
        try:
            await client.create(DEVICE_CLASSES, device_class)
        except ApiError as error:
            if not error.already_exists:
                raise _refusal(error, "a DeviceClass", "deviceClasses", location) from error
    await _require_valid_pools(client, requested_nodes, location)
    await nodes.create_requested_nodes(client, requested_nodes, location=location)


async def _require_valid_pools(client: Client, requested_nodes: Iterable[Manifest], location: str) -> None:
    """Let the API server check the slices of one node of each profile that lists devices. They are published later, by
    a process that could tell nobody of a mistake."""
    examples = {text: node for node in requested_nodes if (text := node["metadata"]["annotations"].get(POOLS))}
    for node in examples.values():
        metadata = node["metadata"]
        for manifest in gpu_devices.slice_manifests(metadata["name"], "unknown", metadata["annotations"]):
            try:
                await client.request("POST", RESOURCE_SLICES.path(), params={"dryRun": "All"}, body=manifest)
            except ApiError as error:
                if not error.already_exists:
                    raise _refusal(error, f"devices of {metadata['name']}", "pools", location) from error


def _refusal(error: ApiError, noun: str, field: str, location: str) -> Exception:
    """Return the error to raise when the API server has not created an object."""
    if error.status not in (400, 422):
        return error
    problem = f"the API server refuses {noun}: {' '.join(error.message.split())}"
    return UsageError(problem, where=location, hint=f"correct {field} in the file")
