"""A write that reaches the API server late, from a process that has died meanwhile, must not hit what has been made
anew under the name."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kube.informer import Informer
from reference_impl.api import models
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.control.writer import Writer
from reference_impl.plan.labels import CLIQUE_FINALIZER


class Listening:
    """A client that only keeps what it is to send."""

    def __init__(self) -> None:
        self.patches: list[Any] = []

    async def patch(self, resource: Any, namespace: str, name: str, body: Any, **how: Any) -> bytes:
        self.patches.append(body)
        return b'{"metadata": {"name": "c", "namespace": "n", "uid": "1", "resourceVersion": "8"}}'


def test_a_finalizer_is_taken_from_that_very_object_only() -> None:
    client: Any = Listening()
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
