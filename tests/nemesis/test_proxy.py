"""Tests that the proxy forwards all requests and responses unchanged, unless an Interference changes a write or a
watch."""

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

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
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
async def start_proxy(
    tmp_path: Path, interference: Interference
) -> AsyncIterator[tuple[Upstream, Callable[..., Awaitable[Any]], str]]:
    """Yield an API server, a client whose requests pass through a proxy, and the proxy's address."""
    upstream = Upstream()
    runner = web.ServerRunner(web.Server(upstream.respond))
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    folder = Certificates(tmp_path).ensure()
    tls_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls_context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    connection = Connection(f"http://{HOST}:{runner.addresses[0][1]}", None, lambda: "Bearer of-the-role")
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(folder / "ca.crt")))
    async with Proxy(connection, tls_context, 0) as proxy, aiohttp.ClientSession(connector=connector) as session:
        proxy.interference = interference
        yield upstream, session.request, f"https://{HOST}:{proxy.port}"
    await runner.cleanup()


def test_a_write_and_its_response_are_not_changed(tmp_path: Path) -> None:
    async def run_test() -> None:
        async with start_proxy(tmp_path, Interference()) as (upstream, request, proxy):
            body = b'{"metadata": {"name": "p"}}' + b" " * (2 << 20)
            path = f"{PODS}?fieldManager=a%20b"
            respond = await request("POST", f"{proxy}{path}", data=io.BytesIO(body), headers={"X-Own": "1"})
            assert (respond.status, await respond.read()) == (201, b'{"a": 1}')
            assert respond.headers.getall("Warning") == ["299 - one", "299 - two"]
            [(method, target, headers, sent_body)] = upstream.requests
            assert (method, target, sent_body) == ("POST", path, body)
            assert headers["X-Own"] == "1" and headers["Authorization"] == "Bearer of-the-role"

    asyncio.run(run_test())


def test_a_write_can_be_refused_before_it_is_sent(tmp_path: Path) -> None:
    class RefusingInterference(Interference):
        async def write(self, request: ProxyRequest, send: Send) -> ProxyReply:
            return ProxyReply(409, {"Content-Type": "application/json"}, b'{"reason": "Conflict"}')

    async def run_test() -> None:
        async with start_proxy(tmp_path, RefusingInterference()) as (upstream, request, proxy):
            respond = await request("DELETE", f"{proxy}{PODS}/p")
            assert (respond.status, await respond.json()) == (409, {"reason": "Conflict"}) and not upstream.requests
            assert (await request("GET", f"{proxy}{PODS}/p")).status == 200, "reads pass"

    asyncio.run(run_test())


def test_a_write_can_be_sent_without_a_response(tmp_path: Path) -> None:
    class LosingInterference(Interference):
        async def write(self, request: ProxyRequest, send: Send) -> ProxyReply:
            await send(request)
            raise Cut

    async def run_test() -> None:
        async with start_proxy(tmp_path, LosingInterference()) as (upstream, request, proxy):
            with pytest.raises(aiohttp.ClientError):
                await request("POST", f"{proxy}{PODS}", data=b"{}")
            assert [method for method, *_ in upstream.requests] == ["POST"]

    asyncio.run(run_test())


def test_a_watch_is_forwarded_event_by_event(tmp_path: Path) -> None:
    class FilteringInterference(Interference):
        async def event(self, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
            if event.name != "b":
                await deliver(event)

    async def run_test() -> None:
        for interference, names in ((Interference(), "abc"), (FilteringInterference(), "ac")):
            async with start_proxy(tmp_path, interference) as (_, request, proxy):
                respond = await request("GET", f"{proxy}{PODS}?watch=1")
                lines = (await respond.read()).splitlines()
                assert [json.loads(line)["object"]["metadata"]["name"] for line in lines] == list(names)

    asyncio.run(run_test())


def test_a_watch_can_be_closed_before_an_event(tmp_path: Path) -> None:
    class ClosingInterference(Interference):
        async def event(self, watch: ProxyRequest, event: WatchEvent, deliver: Deliver) -> None:
            if event.name == "b":
                raise Cut
            await deliver(event)

    async def run_test() -> None:
        async with start_proxy(tmp_path, ClosingInterference()) as (_, request, proxy):
            respond = await request("GET", f"{proxy}{PODS}?watch=1")
            first_line = await respond.content.readline()
            assert json.loads(first_line)["object"]["metadata"]["name"] == "a"
            with pytest.raises(aiohttp.ClientError):
                await respond.read()

    asyncio.run(run_test())


def test_a_watch_can_be_answered_by_the_proxy(tmp_path: Path) -> None:
    class ExpiringInterference(Interference):
        async def read(self, request: ProxyRequest) -> ProxyRequest | ProxyReply:
            return ProxyReply(410)

    async def run_test() -> None:
        async with start_proxy(tmp_path, ExpiringInterference()) as (upstream, request, proxy):
            assert (await request("GET", f"{proxy}{PODS}?watch=1")).status == 410 and not upstream.requests

    asyncio.run(run_test())


def test_a_client_of_http_2_falls_back_to_http_1(tmp_path: Path) -> None:
    async def run_test() -> None:
        async with start_proxy(tmp_path, Interference()) as (_, _request, proxy):
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
            context.set_alpn_protocols(["h2", "http/1.1"])
            _, writer = await asyncio.open_connection(HOST, int(proxy.rpartition(":")[2]), ssl=context)
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() in (None, "http/1.1")
            writer.close()

    asyncio.run(run_test())
