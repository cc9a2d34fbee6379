"""Faults: what is done to one write or to one event, while it passes through the proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlencode

import orjson

from conformance.nemesis.points import EVENT, WRITE, Counting, Point
from conformance.nemesis.proxy.events import Event
from conformance.nemesis.proxy.interference import Cut, Deliver, Interference, Reply, Request, Send

SLOW, LATE, STALE = 3.0, 2.0, 3.0
"""Seconds: of a slow answer, of a late watch, and of a stale API server."""
STATUSES = {
    "conflict": (409, "Conflict"),
    "gone": (410, "Expired"),
    "throttled": (429, "TooManyRequests"),
    "broken": (500, "InternalError"),
    "unavailable": (503, "ServiceUnavailable"),
}
"""Fault → status and reason of the answer (Kubernetes API conventions)."""


@dataclass(frozen=True)
class Plan:
    """One fault at one point of a scenario."""

    scenario: str
    fault: str
    point: Point

    def __str__(self) -> str:
        return f"{self.scenario}: {self.fault} at {self.point}"


@dataclass
class Watching(Interference):
    """Counts the points of a step in one namespace, and changes nothing."""

    step: str
    namespace: str
    seen: list[Point] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._counting = Counting(self.step, self.namespace)

    async def write(self, request: Request, send: Send) -> Reply:
        assert request.call is not None
        if request.call.namespace != self.namespace:
            return await send(request)
        point = self._counting.of_write(request.call, _name(request))
        self.seen.append(point)
        return await self.strike_write(point, request, send)

    async def event(self, watch: Request, event: Event, deliver: Deliver) -> None:
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


@dataclass
class Striking(Watching):
    """Strikes once, at the point of a plan. `kill` kills the processes of the role and starts them again."""

    plan: Plan | None = None
    kill: Callable[[], Awaitable[None]] | None = None
    struck: bool = False

    async def strike_write(self, point: Point, request: Request, send: Send) -> Reply:
        assert self.plan is not None
        if self.struck or point != self.plan.point:
            return await send(request)
        self.struck = True
        match self.plan.fault:
            case "killed-before":
                await self._killed()
            case "killed-after":
                await send(request)
                await self._killed()
            case "lost-answer":
                await send(request)
                raise Cut
            case "slow":
                reply = await send(request)
                await asyncio.sleep(SLOW)
                return reply
            case fault:
                return _refusal(*STATUSES[fault])
        raise Cut

    async def strike_event(self, point: Point, watch: Request, event: Event, deliver: Deliver) -> None:
        assert self.plan is not None
        if self.struck or point != self.plan.point:
            await deliver(event)
            return
        self.struck = True
        match self.plan.fault:
            case "late":
                await asyncio.sleep(LATE)
                await deliver(event)
            case "closed":
                raise Cut
            case "relisted":
                await deliver(_gone(event))
                raise Cut

    async def _killed(self) -> None:
        assert self.kill is not None
        await self.kill()


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


def _refusal(code: int, reason: str) -> Reply:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"a fault was injected: {reason}",
        "reason": reason,
        "code": code,
        **({"details": {"retryAfterSeconds": 1}} if code == 429 else {}),
    }
    headers = {"Content-Type": "application/json", **({"Retry-After": "1"} if code == 429 else {})}
    return Reply(code, headers, orjson.dumps(status))
