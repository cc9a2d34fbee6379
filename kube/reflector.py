"""A loop of lists and watches that keeps a copy of a collection up to date.

Invariant: after any interruption the sink receives every difference exactly once, deletions included. An interruption
costs only time, namely a back-off that grows until a watch delivers a valid event. After an expired resource version
the collection is listed again at once, unless the version expires twice in a row.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from kube import errors, nesting
from kube.client import Client
from kube.errors import ApiError
from kube.objects import Object, envelope
from kube.resource import Resource

T = TypeVar("T", bound=Object)
log = logging.getLogger(__name__)

PAGE_SIZE = 1000
INACTIVITY_SECONDS = 90.0
"""A watch that receives no byte for this long is closed and resumed. The API server sends a bookmark about once a
minute."""


_RELIST_CODES = frozenset({400, 404, 410})
"""Status codes of watch errors that would recur with the same resource version: too old, not understood, resource not
served."""


class Sink(Protocol[T]):
    """The receiver of a reflector's events. If it raises, the reflector ends with SinkFailed."""

    def on_list(self, items: list[T]) -> None:
        """Receive a list of the whole collection."""

    def on_event(self, kind: str, item: T) -> None:
        """Receive one watch event: ADDED, MODIFIED or DELETED."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct):
    metadata: _ListMeta


_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError)
"""Exceptions that msgspec raises for bytes that are not JSON. A ValidationError (valid JSON of another shape) is also a
DecodeError; invalid UTF-8 in a decoded string is a UnicodeDecodeError."""

_pages = msgspec.json.Decoder(_Page)
_events = msgspec.json.Decoder(_Event)
_versions = msgspec.json.Decoder(_Versioned)


class SinkFailed(Exception):
    """The sink, or a handler that it calls, raised an exception: a bug of this process, which no retry fixes."""


class _Garbled(Exception):
    """A line that is not a watch event, or an ERROR event: the rest of the stream cannot be trusted."""


class _Unreadable(Exception):
    """A valid event whose object does not fit the type that it is decoded into. A retry would fail in the same way."""


class LineCutter:
    """Splits a stream of chunks into lines of any length. The bytes after the last line break wait for the next chunk;
    at the end of a stream they are an incomplete object, which the resumed watch sends again."""

    def __init__(self) -> None:
        self._incomplete_line = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that this chunk completes, except blank ones."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            line = chunk[start:end]
            if self._incomplete_line:
                line = bytes(self._incomplete_line) + line
                self._incomplete_line.clear()
            start = end + 1
            if line.strip():
                yield line
        self._incomplete_line += chunk[start:]


class Backoff:
    """Exponential back-off with full jitter: a random delay between 0 and a ceiling that starts at `first` and doubles
    up to `cap` seconds."""

    def __init__(self, first: float = 0.05, cap: float = 10.0) -> None:
        self._first, self._cap, self._tries = first, cap, 0

    def next(self) -> float:
        """Return the next delay in seconds."""
        ceiling: float = min(self._cap, self._first * 2 ** min(self._tries, 20))
        self._tries += 1
        return random.uniform(0, ceiling)

    def reset(self) -> None:
        """Start again at the shortest delay."""
        self._tries = 0


class Reflector(Generic[T]):
    """Passes the objects of one collection, decoded by `decode`, to `sink` until cancelled."""

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
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client, self._decode, self._sink = client, decode, sink
        self._resource = resource
        self._path = resource.path(namespace)
        self._params = {
            key: value for key, value in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if value
        }
        self._inactivity, self._sleep = inactivity, sleep
        self._version = "0"
        self._listed = False
        self._expired = False  # whether the resource version has expired since the last valid event
        self._garbled = 0  # consecutive streams that broke without a valid event
        self._backoff = Backoff()

    @property
    def version(self) -> int:
        """The resource version of the last list, event or bookmark that was processed."""
        return int(self._version)

    async def run(self) -> None:
        """Run until cancelled. Connection errors, error responses and broken streams are logged and retried with
        back-off.

        Raises SinkFailed if the sink raises.
        """
        while True:
            wait: float | None = None
            level = logging.INFO
            try:
                if not self._listed:
                    await self._list()
                if await self._watch():
                    continue
                reason = "watch ended without an event"
            except ApiError as error:
                if error.status in _RELIST_CODES:
                    self._listed = False
                level = logging.INFO if error.status == 410 else logging.WARNING
                wait, reason = error.retry_after, str(error)
                if error.status == 410 and not self._expired:
                    # Not an error of the server: the resource version of a quiet collection expires with time. Wait
                    # only if it expires again.
                    self._expired, wait = True, 0.0
            except _Unreadable as error:
                self._listed = False
                reason = str(error)
            except _Garbled as error:
                # Try to resume first, since that loses nothing. A stream that breaks again at this resource version
                # needs a list.
                self._garbled += 1
                self._listed = self._garbled < 2
                reason = str(error)
            except _request_errors() as error:
                reason = repr(error)
            if wait is None:
                wait = self._backoff.next()
            log.log(
                level, "%s: %s; %s again in %.2f s", self._resource, reason, "watch" if self._listed else "list", wait
            )
            if wait:
                await self._sleep(wait)

    async def _list(self) -> None:
        items, self._version = await self.read()
        self._listed, self._garbled = True, 0
        try:
            self._sink.on_list(items)
        except Exception as error:
            raise SinkFailed(f"{self._resource}: handling a list failed: {error!r}") from error

    async def read(self) -> tuple[list[T], str]:
        """List the whole collection and return its items and its resource version. The sink is not called."""
        items: list[T] = []
        params = {**self._params, "limit": str(PAGE_SIZE)}
        while True:
            page = _pages.decode(await self._client.request("GET", self._path, params=params))
            for raw in page.items or ():
                try:
                    items.append(self._decode(raw))
                except msgspec.ValidationError as error:
                    self._log_undecodable(raw, error)
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        return items, page.metadata.resource_version or "0"

    async def _watch(self) -> bool:
        """Run one watch to its end and return whether it delivered anything."""
        params = {
            **self._params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(300, 600)),
        }
        loop, cutter = asyncio.get_running_loop(), LineCutter()
        delivered = False
        async with (
            asyncio.timeout(self._inactivity) as silence,
            self._client.stream(self._path, params) as stream,
        ):
            async for chunk in stream.iter_any():
                silence.reschedule(loop.time() + self._inactivity)
                for line in cutter.feed(chunk):
                    self._process_line(line)
                    self._backoff.reset()
                    self._garbled, self._expired, delivered = 0, False, True
        return delivered

    def _process_line(self, line: bytes) -> None:
        try:
            event = _events.decode(nesting.limit_depth(line, self._path))
        except _DECODE_ERRORS as error:
            raise _Garbled(f"no watch event: {error}: {line[:80]!r}") from error
        if event.type == "ERROR":
            status = ApiError.of(0, bytes(event.object), None)
            if status.status in _RELIST_CODES or status.status == 429:
                raise status
            raise _Garbled(str(status))
        try:
            if event.type == "BOOKMARK":
                self._advance_version(_versions.decode(event.object).metadata.resource_version)
                return
            item = self._decode(event.object)
        except msgspec.ValidationError as error:
            self._log_undecodable(event.object, error)
            raise _Unreadable(str(error)) from error
        except _DECODE_ERRORS as error:
            raise _Garbled(f"no object: {error}") from error
        try:
            self._sink.on_event(event.type, item)
        except Exception as error:
            key = "/".join(item.metadata.key)
            raise SinkFailed(f"{self._resource}: handling {event.type} of {key} failed: {error!r}") from error
        self._advance_version(item.metadata.resource_version)

    def _advance_version(self, version: str) -> None:
        if version:
            self._version = version

    def _log_undecodable(self, raw: msgspec.Raw, error: Exception) -> None:
        """Log that an object cannot be decoded. Such an object counts as absent. A new object is not reported, and a
        known object is reported as deleted."""
        try:
            name = "/".join(envelope(raw).metadata.key)
        except _DECODE_ERRORS:
            name = repr(bytes(raw)[:80])
        log.error("cannot decode %s %s, treating it as absent: %s", self._resource, name, error)


def _request_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a request that got no response, or a response that cannot be read."""
    return (*errors.UNANSWERED, *_DECODE_ERRORS)
