"""Tests of each fault's effect on a write or an event, with fake processes and a fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

import pytest

from conformance.nemesis import faults
from conformance.nemesis.faults import STATUSES, FaultInjector
from conformance.nemesis.points import FaultPlan, FaultPoint
from conformance.nemesis.proxy import calls
from conformance.nemesis.proxy.events import WatchEvent
from conformance.nemesis.proxy.interference import Cut, ProxyReply, ProxyRequest

PODS = "/api/v1/namespaces/n/pods"
DONE = ProxyReply(201, {}, b"{}")
WRITE, EVENT = FaultPoint("s", "write", "create", "pods", "", "a"), FaultPoint("s", "event", "ADDED", "pods", "", "a")


class Role:
    """Records what is done to the processes."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    async def kill(self) -> None:
        self.log.append("killed")

    async def start(self) -> None:
        self.log.append("started")

    @contextmanager
    def suspended(self) -> Iterator[None]:
        self.log.append("stopped")
        yield
        self.log.append("continued")


class Stage:
    """A fault at a point, and a log of what happened."""

    def __init__(self, fault: str, point: FaultPoint = WRITE) -> None:
        self.log: list[str] = []
        self.striking = FaultInjector("s", "n", FaultPlan("create", fault, point), Role(self.log), "100")

    async def write(self, name: str = "a") -> str:
        """Send a write as the role does; return the status of the response, or "nothing" if the connection is cut."""
        try:
            reply = await self.striking.write(
                request("POST", PODS, body=f'{{"metadata":{{"name":"{name}"}}}}'), self._send
            )
        except Cut:
            return "nothing"
        return str(reply.status)

    async def event(self, name: str = "a") -> str:
        """Deliver a watch event; return what the role sees."""
        try:
            await self.striking.event(
                request("GET", PODS, "watch=1"), WatchEvent("ADDED", name, "n", "7", b""), self._deliver
            )
        except Cut:
            return "its end"
        return "the event"

    async def _send(self, request: ProxyRequest) -> ProxyReply:
        self.log.append("done" if b'"a"' in request.body else "another done")
        return DONE

    async def _deliver(self, event: WatchEvent) -> None:
        self.log.append("delivered")


def request(method: str, path: str, query: str = "", body: str = "") -> ProxyRequest:
    call = calls.read(method, path, {key: value[0] for key, value in parse_qs(query).items()})
    return ProxyRequest(call, method, path, query, {}, body.encode())


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLOW", "LATE_ANSWER", "STALE", "HELD", "PAUSED"):
        monkeypatch.setattr(faults, name, 0.05)


@pytest.mark.parametrize(
    ("fault", "answer", "log"),
    [
        ("killed-before", "nothing", ["killed", "started"]),
        ("killed-after", "nothing", ["done", "killed", "started"]),
        ("lost-answer", "nothing", ["done"]),
        ("slow", "201", ["done"]),
        ("swapped", "201", ["done"]),
        ("two-leaders", "201", ["stopped", "continued", "done"]),
        ("time-travel", "nothing", ["done", "killed", "started"]),
        *((fault, str(code), []) for fault, (code, _) in STATUSES.items()),
    ],
)
def test_a_write_is_struck_once(fault: str, answer: str, log: list[str]) -> None:
    async def play() -> None:
        stage = Stage(fault)
        assert (await stage.write(), stage.log) == (answer, log)
        assert stage.striking.struck and await stage.write() == "201"

    asyncio.run(play())


def test_a_fault_is_over_when_the_role_has_been_started_again() -> None:
    async def play() -> None:
        stage = Stage("killed-after")
        stopped, started = asyncio.Event(), asyncio.Event()

        async def start() -> None:
            stopped.set()
            await started.wait()

        stage.striking.role.start = start  # type: ignore[method-assign]
        busy = [stage.striking.busy]
        writing = asyncio.create_task(stage.write())
        await stopped.wait()
        busy.append(stage.striking.busy)
        started.set()
        assert await writing == "nothing"
        assert [*busy, stage.striking.busy] == [False, True, False]  # no step ends while the role is down

    asyncio.run(play())


@pytest.mark.parametrize("fault", ["swapped", "two-leaders"])
def test_a_write_is_held_back_until_another_one_is_done(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        stage = Stage(fault)
        held_write = asyncio.create_task(stage.write())
        await asyncio.sleep(0)
        assert await stage.write("b") == "201" and await held_write == "201"
        assert [line for line in stage.log if "done" in line] == ["another done", "done"]

    monkeypatch.setattr(faults, "HELD", 60)
    monkeypatch.setattr(faults, "PAUSED", 60)
    asyncio.run(play())


@pytest.mark.parametrize(
    ("fault", "event"),
    [
        ("late", "the event"),
        ("closed", "its end"),
        ("relisted", "its end"),
        ("missed", "its end"),
    ],
)
def test_an_event_is_struck_once(fault: str, event: str) -> None:
    async def play() -> None:
        stage = Stage(fault, EVENT)
        assert await stage.event("b") == "the event" and await stage.event() == event
        answer = await stage.striking.read(request("GET", PODS, "watch=1&resourceVersion=7"))
        assert isinstance(answer, ProxyReply) is (fault in ("relisted", "missed"))
        assert not isinstance(await stage.striking.read(request("GET", PODS, "watch=1")), ProxyReply)

    asyncio.run(play())


def test_the_past_is_shown_for_a_while_from_the_first_request_after_the_restart() -> None:
    async def play() -> None:
        stage = Stage("time-travel")
        list_request = request("GET", PODS, "resourceVersion=0")
        assert await stage.striking.read(list_request) == list_request
        await stage.write()
        await asyncio.sleep(0.1)  # longer than the past is shown; the time counts from the role's first request
        past = await stage.striking.read(list_request)
        assert isinstance(past, ProxyRequest)
        assert parse_qs(past.query) == {"resourceVersion": ["100"], "resourceVersionMatch": ["Exact"]}
        consistent = request("GET", PODS)
        assert await stage.striking.read(consistent) == consistent
        await asyncio.sleep(0.1)
        assert await stage.striking.read(list_request) == list_request

    asyncio.run(play())
