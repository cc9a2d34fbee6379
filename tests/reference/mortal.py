"""A client whose process dies in the middle of its work, and which sees a single namespace of the cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp

from kube.client import Client

_COLLECTION = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)/([a-z]+)")
_OF_STORAGE = {"persistentvolumes", "storageclasses", "csinodes", "csidrivers", "volumeattachments"}
_OF_DEVICES = {"resourceslices", "deviceclasses"}
_EVERYWHERE = frozenset(
    {
        *("namespaces", "nodes", "clustertopologybindings", "priorityclasses", "selfsubjectreviews"),
        *_OF_STORAGE,
        *_OF_DEVICES,
    }
)
"""Cluster-scoped resources."""


class Mortal(Client):
    """A client whose process dies with its `k`-th write (counted from 1). With `k` = 0, it never dies.

    The process never receives the response to that write. The write has happened, but the process does not know this.
    With a `namespace`, the client sees no other namespace, so that many operators and schedulers can run on one
    cluster, each in its own namespace.
    """

    def __init__(self, *arguments: Any, namespace: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.writes, self.k, self.namespace = 0, 0, namespace
        self.dead = asyncio.Event()

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        answer = await super().request(method, self._namespaced(path), **options)
        if method != "GET":
            self.writes += 1
            if self.k and self.writes >= self.k:
                self.dead.set()
                await asyncio.Event().wait()
        return answer

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[aiohttp.StreamReader]:
        async with super().stream(self._namespaced(path), params) as reader:
            yield reader

    def _namespaced(self, path: str) -> str:
        match = _COLLECTION.fullmatch(path)
        if not self.namespace or match is None or match[2] in _EVERYWHERE:
            return path
        return f"{match[1]}/namespaces/{self.namespace}/{match[2]}"


async def death(task: asyncio.Task[None]) -> None:
    """Abort the work in progress, so that nothing that the process knew survives."""
    task.cancel()
    with suppress(asyncio.CancelledError, BaseExceptionGroup):
        await task
