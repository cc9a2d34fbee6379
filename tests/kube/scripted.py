"""A loopback HTTP server that sends scripted bytes to our client, one response for each request, in order.

The server does not implement Kubernetes and sends only what a test scripts. Requests beyond the script hang until the
test ends. The server is driven by events and never waits for time to pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from kube.client import Client
from kube.config import Connection
from kube.objects import Envelope, envelope
from kube.reflector import Reflector
from kube.resource import PODS

TIMEOUT_SECONDS = 8.0
"""The time, in seconds, after which a waiting test fails."""


def pod(name: str, version: int | str, uid: str | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
        | metadata
    }


def event(kind: str, item: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": item}) + b"\n"


def bookmark(version: int | str) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def status(code: int, reason: str = "", message: str = "no", **fields: Any) -> bytes:
    return orjson.dumps({"kind": "Status", "code": code, "reason": reason, "message": message, **fields})


def error(code: int, reason: str = "", message: str = "no") -> bytes:
    """Return an ERROR event of a watch."""
    return b'{"type":"ERROR","object":' + status(code, reason, message) + b"}\n"


@dataclass
class ScriptedResponse:
    """A complete response."""

    body: bytes = b""
    code: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def page(*items: dict[str, Any], version: int | str, continue_token: str = "") -> ScriptedResponse:
    """Return one page of a list. `continue_token` is the token of the next page."""
    meta = {"resourceVersion": str(version)} | ({"continue": continue_token} if continue_token else {})
    return ScriptedResponse(orjson.dumps({"kind": "PodList", "metadata": meta, "items": list(items)}))


def refusal(code: int, reason: str = "", **headers: str) -> ScriptedResponse:
    return ScriptedResponse(
        status(code, reason), code, {name.replace("_", "-"): value for name, value in headers.items()}
    )


@dataclass
class Stream:
    """A watch whose pieces are sent one by one. Afterwards it is closed, cut off in the middle of the response, or held
    open. For a piece that is an asyncio.Event, the server waits instead of sending."""

    pieces: Sequence[bytes | asyncio.Event] = ()
    then: str = "close"


def watch(*pieces: bytes | asyncio.Event, then: str = "close") -> Stream:
    return Stream(pieces, then)


def held_open(*pieces: bytes) -> Stream:
    """Return a watch that stays open and silent after its last piece."""
    return Stream(pieces, "hold")


class ScriptedServer:
    """The server side of one test: the requests so far, and ways to wait for the next request."""

    def __init__(self, script: Iterable[ScriptedResponse | Stream]) -> None:
        self._script = list(script)
        self._changed = asyncio.Condition()
        self._finished = asyncio.Event()
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.cut: list[int] = []
        """Indices in `requests` of those whose connection the client closed early."""
        self.open = self.most_open = 0
        self.address = ""

    @property
    def queries(self) -> list[dict[str, str]]:
        return [dict(request.query) for request in self.requests]

    @property
    def kinds(self) -> str:
        """The kind of each request so far: L for a list, C for the continuation of a list, W for a watch."""
        return "".join("W" if "watch" in q else "C" if "continue" in q else "L" for q in self.queries)

    @property
    def watched_from(self) -> list[str]:
        return [query["resourceVersion"] for query in self.queries if "watch" in query]

    async def until(self, condition: Callable[[ScriptedServer], bool]) -> None:
        """Wait until the condition holds."""
        async with asyncio.timeout(TIMEOUT_SECONDS), self._changed:
            await self._changed.wait_for(lambda: condition(self))

    async def until_asked(self, count: int) -> None:
        await self.until(lambda server: len(server.requests) >= count)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        number = len(self.requests)
        self.requests.append(request)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            self.bodies.append(await request.read())
            await self._notify()
            return await self._answer(request, self._script[number] if number < len(self._script) else held_open())
        except (ConnectionError, asyncio.CancelledError):
            self.cut.append(number)
            raise
        finally:
            self.open -= 1

    async def _answer(self, request: web.Request, answer: ScriptedResponse | Stream) -> web.StreamResponse:
        if isinstance(answer, ScriptedResponse):
            return web.Response(body=answer.body, status=answer.code, headers=answer.headers)
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in answer.pieces:
            await (piece.wait() if isinstance(piece, asyncio.Event) else response.write(piece))
        if answer.then == "hold":
            await self._finished.wait()
        elif answer.then == "cut":
            assert request.transport is not None
            request.transport.abort()
        return response

    @asynccontextmanager
    async def serve(self, ssl_context: Any = None) -> AsyncIterator[ScriptedServer]:
        application = web.Application(client_max_size=2**26)
        application.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context)
        await site.start()
        port = runner.addresses[0][1]
        self.address = f"{'https' if ssl_context else 'http'}://127.0.0.1:{port}"
        try:
            yield self
        finally:
            self._finished.set()
            await runner.cleanup()


@asynccontextmanager
async def serving(*script: ScriptedResponse | Stream, **options: Any) -> AsyncIterator[tuple[ScriptedServer, Client]]:
    """Yield a scripted server and a client connected to it. `options` are passed to the client."""
    server = ScriptedServer(script)
    async with (
        server.serve(),
        Client(Connection(server.address, None, lambda: None), user_agent="test", **options) as client,
    ):
        yield server, client


class RecordingSink:
    """A sink that records its calls."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []
        """Tuples `("LIST", names)` or, for an event, `(type, "name@version")`."""
        self.raw: list[bytes] = []
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def on_list(self, items: list[Envelope]) -> None:
        self._note("LIST", " ".join(item.metadata.name for item in items))

    def on_event(self, kind: str, item: Envelope) -> None:
        self.raw.append(item.raw)
        self._note(kind, f"{item.metadata.name}@{item.metadata.resource_version}")

    def record(self, kind: str, before: Any, now: Any) -> None:
        """Record an event as a handler of an informer."""
        self._note(kind, f"{now.metadata.name}/{now.metadata.uid}@{now.metadata.resource_version}")

    def _note(self, kind: str, entry: str) -> None:
        self.entries.append((kind, entry))

        async def notify() -> None:
            async with self._changed:
                self._changed.notify_all()

        task = asyncio.get_running_loop().create_task(notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def until(self, count: int) -> list[tuple[str, str]]:
        """Return the entries as soon as there are `count` entries."""
        async with asyncio.timeout(TIMEOUT_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.entries) >= count)
        return self.entries


class RecordedSleep:
    """A stand-in for `asyncio.sleep` that records the delays without waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


@asynccontextmanager
async def running(work: Any) -> AsyncIterator[asyncio.Task[None]]:
    """Run a coroutine in the background of the test. If it raises, the exception propagates when the block ends."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            raise task.exception() or AssertionError


@asynccontextmanager
async def reflecting(
    *script: ScriptedResponse | Stream, decode: Callable[[Any], Any] = envelope, **options: Any
) -> AsyncIterator[tuple[ScriptedServer, RecordingSink, RecordedSleep]]:
    """Run a reflector of pods against the script, with a diary as its sink."""
    diary, naps = RecordingSink(), RecordedSleep()
    async with serving(*script) as (server, client):
        reflector = Reflector(client, PODS, decode, diary, sleep=naps, **options)
        async with running(reflector.run()):
            yield server, diary, naps
