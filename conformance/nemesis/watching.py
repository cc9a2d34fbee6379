"""Count the points of a step while they pass through the proxy."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import orjson

from conformance.nemesis.points import Counting, Point
from conformance.nemesis.proxy.events import Event
from conformance.nemesis.proxy.interference import Deliver, Interference, Reply, Request, Send


@dataclass
class Watching(Interference):
    """Counts the points of a step in one namespace, and changes nothing."""

    step: str
    namespace: str
    seen: list[Point] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._counting = Counting(self.step, self.namespace)
        self._written: list[float] = []

    @property
    def busy(self) -> bool:
        """Return whether a fault is just being injected: the role may be down."""
        return False

    def writes_within(self, seconds: float) -> int:
        """Return how many writes there were in the last so many seconds."""
        since = time.monotonic() - seconds
        return sum(at > since for at in reversed(self._written))

    async def write(self, request: Request, send: Send) -> Reply:
        """Count a write of the namespace."""
        assert request.call is not None
        if request.call.namespace != self.namespace:
            return await send(request)
        point = self._counting.of_write(request.call, _name(request))
        self.seen.append(point)
        self._written.append(time.monotonic())
        return await self.strike_write(point, request, send)

    async def event(self, watch: Request, event: Event, deliver: Deliver) -> None:
        """Count an event of the namespace."""
        assert watch.call is not None
        if event.namespace != self.namespace or event.type == "BOOKMARK":
            await deliver(event)
            return
        point = self._counting.of_event(watch.call.resource, event)
        self.seen.append(point)
        await self.strike_event(point, watch, event, deliver)

    async def strike_write(self, point: Point, request: Request, send: Send) -> Reply:
        """Answer a write of the namespace."""
        return await send(request)

    async def strike_event(self, point: Point, watch: Request, event: Event, deliver: Deliver) -> None:
        """Deliver an event of the namespace, or not."""
        await deliver(event)


def _name(request: Request) -> str:
    """Return the name of the object that is written."""
    assert request.call is not None
    if request.call.name or not request.body.startswith(b"{"):
        return request.call.name
    try:
        metadata = orjson.loads(request.body).get("metadata", {})
    except orjson.JSONDecodeError:
        return ""
    return str(metadata.get("name") or f"{metadata.get('generateName', '')}*")
