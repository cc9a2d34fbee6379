"""List, then watch, for ever: the loop that keeps a copy of a collection true (anchors C-10, C-20 to C-25).

The one invariant: after any interruption the sink is told every difference exactly once, deletions included.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import aiohttp
import msgspec

from kube.client import Client
from kube.errors import ApiError
from kube.objects import Object
from kube.resource import Resource

T = TypeVar("T", bound=Object)
log = logging.getLogger(__name__)

PAGE = 1000
INACTIVITY_SECONDS = 90.0
"""A watch without a byte for this long is cut and resumed: the API server sends a bookmark about once a minute."""


class Sink(Protocol[T]):
    """What the reflector feeds."""

    def replaced(self, items: list[T]) -> None:
        """The whole collection as a list has just shown it."""

    def changed(self, kind: str, item: T) -> None:
        """One watch event: ADDED, MODIFIED or DELETED."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Versioned(msgspec.Struct):
    metadata: _ListMeta


_pages = msgspec.json.Decoder(_Page)
_events = msgspec.json.Decoder(_Event)
_statuses = msgspec.json.Decoder(_Status)
_versions = msgspec.json.Decoder(_Versioned)


class Gone(Exception):
    """The resource version is too old to watch from: list again."""


class LineCutter:
    """Cuts a stream of chunks into lines of any length (anchors C-02, C-24). What follows the last line break waits
    for the next chunk; at the end of a stream it is a half object, which comes again after the resume."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, without blank ones."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            line = chunk[start:end]
            if self._rest:
                line = bytes(self._rest) + line
                self._rest.clear()
            start = end + 1
            if line.strip():
                yield line
        self._rest += chunk[start:]


class Backoff:
    """Exponential with full jitter: seconds to wait before the next try."""

    def __init__(self, first: float = 0.05, cap: float = 10.0) -> None:
        self._first, self._cap, self._tries = first, cap, 0

    def next(self) -> float:
        self._tries += 1
        ceiling: float = min(self._cap, self._first * 2 ** min(self._tries, 20))
        return random.uniform(0.5, 1.0) * ceiling

    def reset(self) -> None:
        self._tries = 0


class Reflector(Generic[T]):
    """Feeds `sink` from one collection, decoded by `decode`, until cancelled."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        decode: Callable[[msgspec.Raw | bytes], T],
        sink: Sink[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        inactivity: float = INACTIVITY_SECONDS,
    ) -> None:
        self._client, self._decode, self._sink = client, decode, sink
        self._resource = resource
        self._path = resource.path(namespace)
        self._params = {
            key: value for key, value in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if value
        }
        self._inactivity = inactivity
        self._version = "0"

    @property
    def version(self) -> int:
        """How far the sink has been told: the resource version of the last list, event or bookmark."""
        return int(self._version)

    async def run(self) -> None:
        """Runs until cancelled. Connection errors and refusals are logged and retried with back-off."""
        backoff = Backoff()
        listed = False
        while True:
            try:
                if not listed:
                    await self._list()
                    listed = True
                    backoff.reset()
                await self._watch(backoff)
            except Gone:
                log.info("%s: resource version expired, listing again", self._resource)
                listed = False
            except ApiError as error:
                if error.status == 410:
                    listed = False
                    continue
                wait = error.retry_after or backoff.next()
                log.warning("%s: %s; again in %.1f s", self._resource, error, wait)
                await asyncio.sleep(wait)
            except TimeoutError:
                log.info("%s: silent for %.0f s, watching anew", self._resource, self._inactivity)
            except (aiohttp.ClientError, OSError, msgspec.DecodeError) as error:
                wait = backoff.next()
                log.info("%s: %r; again in %.1f s", self._resource, error, wait)
                await asyncio.sleep(wait)

    async def _list(self) -> None:
        items: list[T] = []
        params = {**self._params, "limit": str(PAGE)}
        while True:
            page = _pages.decode(await self._client.request("GET", self._path, params=params))
            items += [self._decode(item) for item in page.items or ()]
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        self._version = page.metadata.resource_version
        self._sink.replaced(items)

    async def _watch(self, backoff: Backoff) -> None:
        params = {
            **self._params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(300, 600)),
        }
        loop, cutter = asyncio.get_running_loop(), LineCutter()
        async with (
            asyncio.timeout(self._inactivity) as silence,
            self._client.stream(self._path, params) as stream,
        ):
            async for chunk in stream.iter_any():
                silence.reschedule(loop.time() + self._inactivity)
                for line in cutter.feed(chunk):
                    self._take(_events.decode(line))
                    backoff.reset()

    def _take(self, event: _Event) -> None:
        if event.type == "ERROR":
            status = _statuses.decode(event.object)
            if status.code == 410:
                raise Gone
            raise ApiError(status.code, "", status.message, {}, None)
        if event.type == "BOOKMARK":
            self._version = _versions.decode(event.object).metadata.resource_version
            return
        item = self._decode(event.object)
        self._sink.changed(event.type, item)
        self._version = item.metadata.resource_version
