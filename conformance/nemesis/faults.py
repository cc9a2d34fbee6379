"""Faults: disturbances of one write or one event as it passes through the proxy."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import parse_qsl, urlencode

import orjson

from conformance.nemesis import corruption
from conformance.nemesis.points import FaultPlan, FaultPoint
from conformance.nemesis.proxy.events import WatchEvent
from conformance.nemesis.proxy.interference import Cut, Deliver, ProxyReply, ProxyRequest, Send
from conformance.nemesis.watching import PointWatcher

SLOW_SECONDS, LATE_SECONDS, STALE_SECONDS, HELD_SECONDS, PAUSED_SECONDS = 3.0, 2.0, 3.0, 1.0, 40.0
"""In seconds: the delay of a slow response, the delay of a late watch event, the time for which a stale API server
shows the past, how long a write waits for another write, and how long a leader is stopped. The last one exceeds the
time after which a Lease is usually lost."""
TWO_LEADERS = "two-leaders"
"""The fault that requires two operators."""
STATUSES = {
    "conflict": (409, "Conflict"),
    "expired": (410, "Expired"),
    "throttled": (429, "TooManyRequests"),
    "broken": (500, "InternalError"),
    "unavailable": (503, "ServiceUnavailable"),
}
"""Maps a fault to the status and reason of the response (Kubernetes API conventions)."""


class Processes(Protocol):
    """The processes of a role."""

    async def kill(self) -> None:
        """Kill the processes."""

    async def start(self) -> None:
        """Start the processes."""

    def suspend(self) -> AbstractContextManager[None]:
        """Stop the processes on entry, and let them continue on exit."""


@dataclass
class FaultInjector(PointWatcher):
    """Strikes once, at the point of the plan. `role` kills, starts or suspends its processes."""

    plan: FaultPlan
    role: Processes
    past_version: str
    """The resource version of the past state that is shown: the state immediately after the previous action, to which
    the role had not yet reacted."""
    has_struck: bool = field(default=False, init=False)
    finished: threading.Event = field(default_factory=threading.Event, init=False)
    """Set when the fault has been injected and the role is up again."""
    _shows_past_next: bool = field(default=False, init=False)
    """Whether the past is shown from the next request on. That request comes from a role that has been restarted,
    however long the restart takes."""
    _stale_until: float = field(default=0.0, init=False)
    _resource_to_relist: str = field(default="", init=False)
    """The resource whose next watch is rejected."""
    _other_write: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when another write is done while one is held back."""

    @property
    def is_busy(self) -> bool:
        """Return whether the fault is being injected at the moment, so that the role may be down."""
        return self.has_struck and not self.finished.is_set()

    async def strike_write(self, point: FaultPoint, request: ProxyRequest, send: Send) -> ProxyReply:
        """Inject the fault if this write is the point of the plan."""
        if self.has_struck or point != self.plan.point:
            reply = await send(request)
            self._other_write.set()
            return reply
        self.has_struck = True
        try:
            return await self._strike(request, send)
        finally:
            self.finished.set()

    async def _strike(self, request: ProxyRequest, send: Send) -> ProxyReply:
        match self.plan.fault:
            case "killed-before":
                await self._restart()
            case "killed-after":
                await send(request)
                await self._restart()
            case "time-travel":
                await send(request)
                await self._restart(shows_past=True)
            case "lost-answer":
                await send(request)
            case "slow":
                reply = await send(request)
                await asyncio.sleep(SLOW_SECONDS)
                return reply
            case "swapped":
                self._other_write.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._other_write.wait(), HELD_SECONDS)
                return await send(request)
            case "two-leaders":
                self._other_write.clear()
                with self.role.suspend(), contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._other_write.wait(), PAUSED_SECONDS)
                return await send(request)
            case "corrupted":
                return await send(replace(request, body=corruption.corrupt(request.body)))
            case fault:
                return rejection(*STATUSES[fault])
        raise Cut

    async def _restart(self, *, shows_past: bool = False) -> None:
        await self.role.kill()
        self._shows_past_next = shows_past
        await self.role.start()

    async def read(self, request: ProxyRequest) -> ProxyRequest | ProxyReply:
        """Reject the watch that must list again, and respond to reads from the watch cache with the past state."""
        assert request.call is not None
        if request.call.verb == "watch" and request.call.resource == self._resource_to_relist:
            self._resource_to_relist = ""
            return rejection(410, "Expired")
        if self._shows_past_next:
            self._shows_past_next, self._stale_until = False, asyncio.get_running_loop().time() + STALE_SECONDS
        if asyncio.get_running_loop().time() < self._stale_until:
            return self._redirect_to_past(request)
        return request

    async def strike_event(self, point: FaultPoint, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
        """Inject the fault if this event is the point of the plan."""
        assert watch.call is not None
        if self.has_struck or point != self.plan.point:
            await deliver(event)
            return
        self.has_struck = True
        try:
            await self._delay_event(watch.call.resource)
        finally:
            self.finished.set()
        if self.plan.fault != "late":
            raise Cut
        await deliver(event)

    async def _delay_event(self, resource: str) -> None:
        match self.plan.fault:
            case "late":
                await asyncio.sleep(LATE_SECONDS)
            case "relisted":
                self._resource_to_relist = resource
            case "missed":
                await asyncio.sleep(LATE_SECONDS)
                self._resource_to_relist = resource

    async def event(self, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
        """Hold back all events while the past is shown."""
        if (remaining_seconds := self._stale_until - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(remaining_seconds)
        await super().event(watch, event, deliver)

    def _redirect_to_past(self, request: ProxyRequest) -> ProxyRequest | ProxyReply:
        """Turn a list from the watch cache into a list of the past state, which a real API server may return after a
        restart. A list that requires the current state is not changed, because an API server reads it from etcd."""
        query = dict(parse_qsl(request.query))
        assert request.call is not None
        if request.call.verb == "watch" and query.get("sendInitialEvents") == "true" and query.get("resourceVersion"):
            return rejection(422, "Invalid")  # makes the client list instead
        if request.call.verb == "list" and query.get("resourceVersion") == "0":
            query |= {"resourceVersion": self.past_version, "resourceVersionMatch": "Exact"}
            return replace(request, query=urlencode(query))
        return request


def rejection(code: int, reason: str) -> ProxyReply:
    """Return a response of the API server that rejects a request."""
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
    return ProxyReply(code, headers, orjson.dumps(status))
