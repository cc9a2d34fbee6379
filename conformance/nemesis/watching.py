"""The points of a step, counted as they pass through the proxy."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from conformance.nemesis import names
from conformance.nemesis.points import FaultPoint, PointCounter
from conformance.nemesis.proxy.events import WatchEvent
from conformance.nemesis.proxy.interference import Deliver, Interference, ProxyReply, ProxyRequest, Send

PRECONDITIONS = frozenset({"metadata.uid", "metadata.resourceVersion"})
"""Fields of a patch that only identify the object."""


@dataclass
class PointWatcher(Interference):
    """Counts the points of a step in one namespace, and changes nothing."""

    step: str
    namespace: str
    points: list[FaultPoint] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._counter = PointCounter(self.step, self.namespace)
        self._write_times: list[float] = []

    @property
    def is_busy(self) -> bool:
        """Return whether a fault is being injected at the moment, so that the role may be down."""
        return False

    def writes_within(self, seconds: float) -> int:
        """Return the number of writes in the last `seconds`."""
        window_start = time.monotonic() - seconds
        return sum(time_of_write > window_start for time_of_write in reversed(self._write_times))

    async def write(self, request: ProxyRequest, send: Send) -> ProxyReply:
        """Count a write in the namespace."""
        assert request.call is not None
        if request.call.namespace != self.namespace:
            return await send(request)
        body = _json(request)
        point = self._counter.write_point(request.call, _name(request, body), _fields(request, body, self.namespace))
        self.points.append(point)
        self._write_times.append(time.monotonic())
        return await self.strike_write(point, request, send)

    async def event(self, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
        """Count an event in the namespace."""
        assert watch.call is not None
        if event.namespace != self.namespace or event.type == "BOOKMARK":
            await deliver(event)
            return
        point = self._counter.event_point(watch.call.resource, event)
        self.points.append(point)
        await self.strike_event(point, watch, event, deliver)

    async def strike_write(self, point: FaultPoint, request: ProxyRequest, send: Send) -> ProxyReply:
        """Respond to a write in the namespace."""
        return await send(request)

    async def strike_event(self, point: FaultPoint, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
        """Deliver an event in the namespace, or drop it."""
        await deliver(event)


def _json(request: ProxyRequest) -> Mapping[str, Any]:
    """Return the object in the body of a request; an empty mapping if there is none."""
    if not request.body.startswith(b"{"):
        return {}
    try:
        body: Mapping[str, Any] = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return {}
    return body


def _name(request: ProxyRequest, body: Mapping[str, Any]) -> str:
    """Return the name of the object that the request writes."""
    assert request.call is not None
    if request.call.name or not body:
        return request.call.name
    metadata = body.get("metadata", {})
    return str(metadata.get("name") or f"{metadata.get('generateName', '')}*")


def _fields(request: ProxyRequest, body: Mapping[str, Any], namespace: str) -> tuple[str, ...]:
    """Return the paths of the fields that a merge patch sets. A list counts as one field."""
    assert request.call is not None
    if request.call.verb != "patch":
        return ()
    return tuple(sorted({names.stable_name(path, namespace) for path in _leaves(body) if path not in PRECONDITIONS}))


def _leaves(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}" if path else key)
    elif path:
        yield path
