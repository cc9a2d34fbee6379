"""Interference with the requests and events that pass through a proxy. By default nothing is changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from conformance.nemesis.proxy.calls import Call
from conformance.nemesis.proxy.events import WatchEvent


class Cut(Exception):
    """Close the client's connection without a response, or in the middle of a response."""


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
    """A response to a request."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Send = Callable[[ProxyRequest], Awaitable[ProxyReply]]
"""Sends a request to the API server."""

Deliver = Callable[[WatchEvent], Awaitable[None]]
"""Delivers an event to the client."""


class Interference:
    """Receives every write, every read and every event of one role's processes. The base class lets everything pass.

    The methods are called in the event loop of the proxy. Each of them may raise Cut.
    """

    async def write(self, request: ProxyRequest, send: Send) -> ProxyReply:
        """Respond to a write."""
        return await send(request)

    async def read(self, request: ProxyRequest) -> ProxyRequest | ProxyReply:
        """Return the request that is sent to the API server for a get, a list or a watch, or return a response
        instead."""
        return request

    async def event(self, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
        """Deliver an event of a watch, or drop it."""
        await deliver(event)
