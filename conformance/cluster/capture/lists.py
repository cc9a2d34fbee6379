"""The lists of a cluster from which a fleet is captured. Nothing else is ever requested of the cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.grove.kinds import DEVICE_CLASSES, RESOURCE_SLICES
from kube import errors
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NODES, Resource

Document = dict[str, Any]


@dataclass(frozen=True)
class Inventory:
    """Nodes, ResourceSlices and DeviceClasses of a cluster. `unserved` names the kinds that it does not serve."""

    nodes: list[Document]
    slices: list[Document] = field(default_factory=list)
    classes: list[Document] = field(default_factory=list)
    unserved: tuple[str, ...] = ()


class Lister:
    """Lists objects of a cluster. It has no other verb, and the client under it refuses to send anything but GET."""

    def __init__(self, client: Client) -> None:
        client.before_write = _refuse
        self._list = client.list

    async def list(self, resource: Resource) -> list[Document]:
        """Return all objects of a kind. Raises ApiError."""
        return await self._list(resource)


def _refuse() -> None:
    raise AssertionError("a capture only reads")


async def read(lister: Lister) -> Inventory:
    """Return what a fleet is captured from. Raises ApiError unless all of it may be listed."""
    unserved: list[str] = []

    async def served(resource: Resource) -> list[Document]:
        try:
            return await lister.list(resource)
        except ApiError as error:
            if not error.not_found:
                raise
            unserved.append(str(resource))
            return []

    nodes, slices, classes = await asyncio.gather(lister.list(NODES), served(RESOURCE_SLICES), served(DEVICE_CLASSES))
    return Inventory(nodes, slices, classes, tuple(sorted(unserved)))


def read_cluster(kubeconfig: Path, location: str) -> Inventory:
    """Return what a fleet is captured from. `location` names the cluster in messages. Raises UsageError if the cluster
    does not answer, or if the user may not list something."""

    async def connect() -> Inventory:
        async with Client.from_kubeconfig(kubeconfig, user_agent="grove-conformance") as client:
            return await read(Lister(client))

    try:
        return asyncio.run(connect())
    except ApiError as error:
        hint = f"a capture lists {NODES}, {RESOURCE_SLICES} and {DEVICE_CLASSES}: ask for these rights"
        if error.status not in (401, 403):
            hint = "see what the cluster says of itself"
        problem = f"the API server refuses: {' '.join(str(error).split())}"
        raise UsageError(problem, where=location, hint=hint) from error
    except errors.UNANSWERED as error:
        problem = f"the API server does not answer: {' '.join(str(error).split()) or type(error).__name__}"
        raise UsageError(problem, where=location, hint="choose another context") from error
