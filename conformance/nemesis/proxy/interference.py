"""Interference with the requests and events that pass through a proxy. The default is to change nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from conformance.nemesis.proxy.calls import Call
from conformance.nemesis.proxy.events import WatchEvent


class Cut(Exception):
    """Close the connection of the client without an answer, or in the middle of one."""


@dataclass(frozen=True)
class ProxyRequest:
    """A request as the client has sent it. `query` is the raw text after the question mark."""

    call: Call | None
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class ProxyReply:
    """An answer to a request."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Send = Callable[[ProxyRequest], Awaitable[ProxyReply]]
"""Sends a request to the API server."""

Deliver = Callable[[WatchEvent], Awaitable[None]]
"""Gives an event to the client."""


class Interference:
    """Sees every write, every read and every event of the processes of one role; the base class lets all pass.

    Its methods are called in the event loop of the proxy. Each may raise Cut.
    """

    async def write(self, request: ProxyRequest, send: Send) -> ProxyReply:
        """Answer a write."""
        return await send(request)

    async def read(self, request: ProxyRequest) -> ProxyRequest | ProxyReply:
        """Return the request that is sent to the API server for a get, a list or a watch, or an answer instead."""
        return request

    async def event(self, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
        """Deliver an event of a watch, or not."""
        await deliver(event)
