"""Tests that the proxy passes everything on unchanged, except where an Interference changes a write or a watch."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from conformance.implementation.certificates import Certificates
from conformance.nemesis.proxy.events import WatchEvent
from conformance.nemesis.proxy.interference import Cut, Deliver, Interference, ProxyReply, ProxyRequest, Send
from conformance.nemesis.proxy.server import HOST, Proxy
from kube.config import Connection

PODS = "/api/v1/namespaces/n/pods"
EVENTS = [
    {"type": "ADDED", "object": {"metadata": {"name": name, "namespace": "n", "resourceVersion": "1"}}}
    for name in "abc"
]


class Upstream:
    """A fake API server that records its requests and sends three events on each watch."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs, dict(request.headers), await request.content.read()))
        if "watch=1" in request.query_string:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            for event in EVENTS:
                await response.write(json.dumps(event).encode() + b"\n")
            return response
        headers = [("Warning", "299 - one"), ("Warning", "299 - two"), ("Content-Type", "application/json")]
        return web.Response(status=201 if request.method == "POST" else 200, body=b'{"a": 1}', headers=headers)


@asynccontextmanager
async def proxied(
    tmp_path: Path, interference: Interference
) -> AsyncIterator[tuple[Upstream, Callable[..., Awaitable[Any]], str]]:
    """Yield an API server, a client whose requests pass through a proxy, and the proxy's address."""
    upstream = Upstream()
    runner = web.ServerRunner(web.Server(upstream.answer))
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    folder = Certificates(tmp_path).ensure()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    connection = Connection(f"http://{HOST}:{runner.addresses[0][1]}", None, lambda: "Bearer of-the-role")
    trusting = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(folder / "ca.crt")))
    async with Proxy(connection, tls, 0) as proxy, aiohttp.ClientSession(connector=trusting) as session:
        proxy.interference = interference
        yield upstream, session.request, f"https://{HOST}:{proxy.port}"
    await runner.cleanup()


def test_a_write_and_its_answer_pass_as_they_are(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with proxied(tmp_path, Interference()) as (upstream, request, proxy):
            body = b'{"metadata": {"name": "p"}}' + b" " * (2 << 20)
            path = f"{PODS}?fieldManager=a%20b"
            answer = await request("POST", f"{proxy}{path}", data=io.BytesIO(body), headers={"X-Own": "1"})
            assert (answer.status, await answer.read()) == (201, b'{"a": 1}')
            assert answer.headers.getall("Warning") == ["299 - one", "299 - two"]
            [(method, target, headers, sent)] = upstream.requests
            assert (method, target, sent) == ("POST", path, body)
            assert headers["X-Own"] == "1" and headers["Authorization"] == "Bearer of-the-role"

    asyncio.run(scenario())


def test_a_write_can_be_refused_before_it_is_sent(tmp_path: Path) -> None:
    class Refusing(Interference):
        async def write(self, request: ProxyRequest, send: Send) -> ProxyReply:
            return ProxyReply(409, {"Content-Type": "application/json"}, b'{"reason": "Conflict"}')

    async def scenario() -> None:
        async with proxied(tmp_path, Refusing()) as (upstream, request, proxy):
            answer = await request("DELETE", f"{proxy}{PODS}/p")
            assert (answer.status, await answer.json()) == (409, {"reason": "Conflict"}) and not upstream.requests
            assert (await request("GET", f"{proxy}{PODS}/p")).status == 200, "reads pass"

    asyncio.run(scenario())


def test_a_write_can_be_done_and_never_answered(tmp_path: Path) -> None:
    class Losing(Interference):
        async def write(self, request: ProxyRequest, send: Send) -> ProxyReply:
            await send(request)
            raise Cut

    async def scenario() -> None:
        async with proxied(tmp_path, Losing()) as (upstream, request, proxy):
            with pytest.raises(aiohttp.ClientError):
                await request("POST", f"{proxy}{PODS}", data=b"{}")
            assert [method for method, *_ in upstream.requests] == ["POST"]

    asyncio.run(scenario())


def test_a_watch_is_passed_on_event_by_event(tmp_path: Path) -> None:
    class Leaving(Interference):
        async def event(self, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
            if event.name != "b":
                await deliver(event)

    async def scenario() -> None:
        for interference, names in ((Interference(), "abc"), (Leaving(), "ac")):
            async with proxied(tmp_path, interference) as (_, request, proxy):
                answer = await request("GET", f"{proxy}{PODS}?watch=1")
                lines = (await answer.read()).splitlines()
                assert [json.loads(line)["object"]["metadata"]["name"] for line in lines] == list(names)

    asyncio.run(scenario())


def test_a_watch_can_be_closed_before_an_event(tmp_path: Path) -> None:
    class Closing(Interference):
        async def event(self, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
            if event.name == "b":
                raise Cut
            await deliver(event)

    async def scenario() -> None:
        async with proxied(tmp_path, Closing()) as (_, request, proxy):
            answer = await request("GET", f"{proxy}{PODS}?watch=1")
            first = await answer.content.readline()
            assert json.loads(first)["object"]["metadata"]["name"] == "a"
            with pytest.raises(aiohttp.ClientError):
                await answer.read()

    asyncio.run(scenario())


def test_a_watch_can_be_answered_instead(tmp_path: Path) -> None:
    class Expired(Interference):
        async def read(self, request: ProxyRequest) -> ProxyRequest | ProxyReply:
            return ProxyReply(410)

    async def scenario() -> None:
        async with proxied(tmp_path, Expired()) as (upstream, request, proxy):
            assert (await request("GET", f"{proxy}{PODS}?watch=1")).status == 410 and not upstream.requests

    asyncio.run(scenario())


def test_a_client_of_http_2_falls_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with proxied(tmp_path, Interference()) as (_, _request, proxy):
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
            context.set_alpn_protocols(["h2", "http/1.1"])
            _, writer = await asyncio.open_connection(HOST, int(proxy.rpartition(":")[2]), ssl=context)
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() in (None, "http/1.1")
            writer.close()

    asyncio.run(scenario())
