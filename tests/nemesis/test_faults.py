"""Tests of the effect of each fault on a write or an event, with fake processes and a fake API server."""

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
CREATED_REPLY = ProxyReply(201, {}, b"{}")
WRITE_POINT, EVENT_POINT = (
    FaultPoint("s", "write", "create", "pods", "", "a"),
    FaultPoint("s", "event", "ADDED", "pods", "", "a"),
)


class FakeRole:
    """A role that records actions on its processes."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    async def kill(self) -> None:
        self.log.append("killed")

    async def start(self) -> None:
        self.log.append("started")

    @contextmanager
    def suspend(self) -> Iterator[None]:
        self.log.append("stopped")
        yield
        self.log.append("continued")


class FaultTrial:
    """A fault at a point, and a log of its effects."""

    def __init__(self, fault: str, point: FaultPoint = WRITE_POINT) -> None:
        self.log: list[str] = []
        self.injector = FaultInjector("s", "n", FaultPlan("create", fault, point), FakeRole(self.log), "100")

    async def write(self, name: str = "a") -> str:
        """Send a write as the role does, and return the status of the response, or "nothing" if the connection is
        cut."""
        try:
            reply = await self.injector.write(
                request("POST", PODS, body=f'{{"metadata":{{"name":"{name}"}}}}'), self._send
            )
        except Cut:
            return "nothing"
        return str(reply.status)

    async def event(self, name: str = "a") -> str:
        """Deliver a watch event, and return "the event", or "its end" if the watch is closed."""
        try:
            await self.injector.event(
                request("GET", PODS, "watch=1"), WatchEvent("ADDED", name, "n", "7", b""), self._deliver
            )
        except Cut:
            return "its end"
        return "the event"

    async def _send(self, request: ProxyRequest) -> ProxyReply:
        self.log.append("done" if b'"a"' in request.body else "another done")
        return CREATED_REPLY

    async def _deliver(self, event: WatchEvent) -> None:
        self.log.append("delivered")


def request(method: str, path: str, query: str = "", body: str = "") -> ProxyRequest:
    call = calls.parse_call(method, path, {key: value[0] for key, value in parse_qs(query).items()})
    return ProxyRequest(call, method, path, query, {}, body.encode())


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLOW_SECONDS", "LATE_SECONDS", "STALE_SECONDS", "HELD_SECONDS", "PAUSED_SECONDS"):
        monkeypatch.setattr(faults, name, 0.05)


@pytest.mark.parametrize(
    ("fault", "response", "log"),
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
def test_a_fault_affects_one_write(fault: str, response: str, log: list[str]) -> None:
    async def run_test() -> None:
        trial = FaultTrial(fault)
        assert (await trial.write(), trial.log) == (response, log)
        assert trial.injector.has_struck and await trial.write() == "201"

    asyncio.run(run_test())


def test_a_fault_is_over_once_the_role_has_been_restarted() -> None:
    async def run_test() -> None:
        trial = FaultTrial("killed-after")
        start_requested, start_permitted = asyncio.Event(), asyncio.Event()

        async def start() -> None:
            start_requested.set()
            await start_permitted.wait()

        trial.injector.role.start = start  # type: ignore[method-assign]
        busy_states = [trial.injector.is_busy]
        write_task = asyncio.create_task(trial.write())
        await start_requested.wait()
        busy_states.append(trial.injector.is_busy)
        start_permitted.set()
        assert await write_task == "nothing"
        assert [*busy_states, trial.injector.is_busy] == [False, True, False]  # no step ends while the role is down

    asyncio.run(run_test())


@pytest.mark.parametrize("fault", ["swapped", "two-leaders"])
def test_a_write_is_held_until_another_write_is_done(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_test() -> None:
        trial = FaultTrial(fault)
        held_write = asyncio.create_task(trial.write())
        await asyncio.sleep(0)
        assert await trial.write("b") == "201" and await held_write == "201"
        assert [line for line in trial.log if "done" in line] == ["another done", "done"]

    monkeypatch.setattr(faults, "HELD_SECONDS", 60)
    monkeypatch.setattr(faults, "PAUSED_SECONDS", 60)
    asyncio.run(run_test())


@pytest.mark.parametrize(
    ("fault", "event"),
    [
        ("late", "the event"),
        ("closed", "its end"),
        ("relisted", "its end"),
        ("missed", "its end"),
    ],
)
def test_a_fault_affects_one_event(fault: str, event: str) -> None:
    async def run_test() -> None:
        trial = FaultTrial(fault, EVENT_POINT)
        assert await trial.event("b") == "the event" and await trial.event() == event
        response = await trial.injector.read(request("GET", PODS, "watch=1&resourceVersion=7"))
        assert isinstance(response, ProxyReply) is (fault in ("relisted", "missed"))
        assert not isinstance(await trial.injector.read(request("GET", PODS, "watch=1")), ProxyReply)

    asyncio.run(run_test())


def test_a_restarted_role_reads_old_state_for_a_while_from_its_first_request() -> None:
    async def run_test() -> None:
        trial = FaultTrial("time-travel")
        list_request = request("GET", PODS, "resourceVersion=0")
        assert await trial.injector.read(list_request) == list_request
        await trial.write()
        await asyncio.sleep(0.1)  # longer than old state is served; this time starts with the role's first request
        old_read = await trial.injector.read(list_request)
        assert isinstance(old_read, ProxyRequest)
        assert parse_qs(old_read.query) == {"resourceVersion": ["100"], "resourceVersionMatch": ["Exact"]}
        consistent_read = request("GET", PODS)
        assert await trial.injector.read(consistent_read) == consistent_read
        await asyncio.sleep(0.1)
        assert await trial.injector.read(list_request) == list_request

    asyncio.run(run_test())
