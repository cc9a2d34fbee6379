"""Creates objects in each new namespace, as controllers of hardened clusters do for quotas and limits. Part of the
process `startup-order`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kube import discovery
from kube.client import Client
from kube.errors import ApiError
from kube.informer import Informer, typed_decoder
from kube.objects import Key, ObjectMeta
from kube.resource import NAMESPACES, Resource
from kube.workqueue import WorkQueue, work

_WRITERS = 4
_SYSTEM_PREFIX = "kube-"
"""The prefix of the names of namespaces in which nothing is created."""


class Namespace(msgspec.Struct):
    """The fields of a namespace that this module reads."""

    metadata: ObjectMeta


class NamespaceObjects:
    """Creates the objects of each namespace once. If one of them is deleted, it is not recreated until this process
    restarts."""

    def __init__(self, client: Client, manifests: Sequence[Mapping[str, Any]]) -> None:
        """`manifests` are the objects to create. Objects of cluster-scoped kinds are ignored."""
        self._client, self._manifests = client, manifests
        self._resources_by_kind: dict[tuple[str, str], Resource] = {}
        self._namespaces = Informer(client, NAMESPACES, typed_decoder(Namespace))
        self._new_namespaces: WorkQueue[Key] = WorkQueue()
        self._namespaces.add_handler(self._on_namespace)

    async def run(self) -> None:
        """Create objects until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._namespaces.run())
            group.create_task(work(self._new_namespaces, self._create_objects, _WRITERS))

    def _on_namespace(self, event_type: str, old: Namespace | None, namespace: Namespace) -> None:
        if event_type == "ADDED" and not namespace.metadata.name.startswith(_SYSTEM_PREFIX):
            self._new_namespaces.add(namespace.metadata.key)

    async def _create_objects(self, key: Key) -> float | None:
        for manifest in self._manifests:
            namespace = self._namespaces.get(*key)
            if namespace is None or namespace.metadata.deletion_timestamp is not None:
                break
            resource = await self._resource(manifest)
            if not resource.namespaced:
                continue
            try:
                await self._client.create(resource, manifest, namespace=key[1])
            except ApiError as error:
                if not error.already_exists:
                    raise
        return None

    async def _resource(self, manifest: Mapping[str, Any]) -> Resource:
        """Return the resource of an object. Raises LookupError if the API server does not serve the resource, or not
        yet."""
        kind = (manifest["apiVersion"], manifest["kind"])
        if kind not in self._resources_by_kind:
            self._resources_by_kind = await discovery.resources_by_kind(self._client)
        if kind not in self._resources_by_kind:
            raise LookupError(f"the API server serves no {kind[1]} of {kind[0]}")
        return self._resources_by_kind[kind]
