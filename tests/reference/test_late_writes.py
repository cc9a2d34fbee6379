"""Tests of writes that arrive too late. A write of a dead process must not affect an object that was recreated under
the same name, and nothing is created in a namespace that is being deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kube.errors import ApiError
from kube.informer import Informer
from reference_impl.api import models
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.control.writer import Writer
from reference_impl.plan.labels import CLIQUE_FINALIZER


class PatchRecordingClient:
    """A client that only records the patches that it is asked to send."""

    def __init__(self) -> None:
        self.patches: list[Any] = []

    async def patch(self, resource: Any, namespace: str, name: str, body: Any, **options: Any) -> bytes:
        self.patches.append(body)
        return b'{"metadata": {"name": "c", "namespace": "n", "uid": "1", "resourceVersion": "8"}}'


def test_a_finalizer_is_removed_only_from_the_object_with_the_same_uid() -> None:
    client: Any = PatchRecordingClient()
    metadata = {"name": "c", "namespace": "n", "uid": "1", "resourceVersion": "7"}
    metadata |= {"finalizers": ["other", CLIQUE_FINALIZER]}
    spec = {"roleName": "r", "replicas": 1, "podSpec": {}}
    clique = msgspec.convert({"metadata": metadata, "spec": spec}, models.PodClique)
    writer = Writer(client, OperatorMetrics())
    cache = Informer(client, models.PODCLIQUES, lambda raw: clique)
    asyncio.run(writer.remove_finalizer(cache, clique, CLIQUE_FINALIZER))
    assert client.patches == [
        [
            {"op": "test", "path": "/metadata/uid", "value": "1"},
            {"op": "test", "path": "/metadata/finalizers/1", "value": CLIQUE_FINALIZER},
            {"op": "remove", "path": "/metadata/finalizers/1"},
        ]
    ]


class RefusedClient:
    """A client whose API server refuses to create objects because their namespace is being deleted."""

    def __init__(self) -> None:
        self.created: list[str] = []

    async def create(self, resource: Any, manifest: Any) -> bytes:
        self.created.append(manifest["metadata"]["name"])
        details = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
        raise ApiError(403, "Forbidden", "the namespace is being terminated", details, None)


def test_no_more_objects_are_created_in_a_namespace_that_is_being_deleted() -> None:
    client: Any = RefusedClient()
    writer = Writer(client, OperatorMetrics())
    cache = Informer(client, models.PODCLIQUES, lambda raw: None)

    async def create(name: str, owner: str) -> None:
        references = [{"uid": owner, "controller": True}]
        await writer.create(cache, {"metadata": {"name": name, "namespace": "n", "ownerReferences": references}})

    async def create_all() -> None:
        for name, owner in (("a", "1"), ("b", "1"), ("c", "2"), ("d", "1")):
            await create(name, owner)

    asyncio.run(create_all())
    assert client.created == ["a", "c"]
