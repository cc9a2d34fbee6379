"""The proxy of one role: TLS and HTTP/1.1 towards the role's processes, and the role's identity towards the API server.

Requests and responses of writes are read completely before they are passed on. The events of a watch are passed on one
by one. Everything else is passed on as a stream of bytes.
"""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import Mapping
from types import TracebackType
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from conformance.nemesis.proxy import calls, events, frames
from conformance.nemesis.proxy.interference import Cut, Interference, ProxyReply, ProxyRequest
from kube.config import Connection

HOST = "127.0.0.1"
SHUTDOWN_SECONDS = 0.1
"""Seconds that requests have to finish when the proxy ends. For aiohttp, zero would mean no limit."""
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host"}
)
"""Headers that apply to one connection, and the Host header, whose value must be the host of the API server."""


class Proxy:
    """Listens on loopback while it is entered, inside one event loop. `interference` may be replaced at any time.

    Clients must have a certificate of the cluster (`tls` demands one), because the proxy has the rights of the role.
    """

    def __init__(self, upstream: Connection, tls: ssl.SSLContext, port: int) -> None:
        self._upstream, self._tls, self.port = upstream, tls, port
        self.interference = Interference()
        self.request_count = 0
        """Number of requests so far."""
        self._runner: web.ServerRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._open_requests: dict[int, web.BaseRequest] = {}
        self._write_tasks: set[asyncio.Future[ProxyReply]] = set()

    async def __aenter__(self) -> Proxy:
        connector = aiohttp.TCPConnector(ssl=self._upstream.tls or False, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        # End a watch together with its client: otherwise the watches of every killed process would remain.
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.abort_connections()
        for task in self._write_tasks:
            task.cancel()
        await asyncio.gather(*self._write_tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()  # first, because then no watch has anything left to pass on
        if self._runner is not None:
            await self._runner.cleanup()

    def abort_connections(self) -> None:
        """Abort all connections, as a broken network does."""
        for request in list(self._open_requests.values()):
            _abort(request)

    async def _handle(self, received: web.BaseRequest) -> web.StreamResponse:
        self.request_count += 1
        self._open_requests[id(received)] = received
        try:
            request = await _read(received)
            try:
                return await self._forward(received, request)
            except aiohttp.ClientError as error:
                # The API server itself has closed the connection, so the proxy does the same.
                raise Cut(str(error)) from error
        except Cut:
            _abort(received)
            return web.Response(status=502)  # the client has already disconnected
        finally:
            del self._open_requests[id(received)]

    async def _forward(self, received: web.BaseRequest, request: ProxyRequest) -> web.StreamResponse:
        call = request.call
        if call is not None and call.is_write:
            # A request that has been sent is completed even if the client does not wait for the response any more.
            task = asyncio.ensure_future(self.interference.write(request, self._send))
            self._write_tasks.add(task)
            task.add_done_callback(self._forget_write)
            await asyncio.wait([task])
            return _response(task.result())
        if call is not None:
            result = await self.interference.read(request)
            if isinstance(result, ProxyReply):
                return _response(result)
            request = result
        is_watch = call is not None and call.verb == "watch"
        async with self._request_upstream(request, whole=not is_watch) as upstream:
            response = web.StreamResponse(status=upstream.status, headers=_forwarded_headers(upstream.headers))
            if upstream.content_length is not None:
                response.content_length = upstream.content_length
            await response.prepare(received)
            if is_watch and upstream.status == 200:
                await self._watch(request, upstream, response)
            else:
                async for piece in upstream.content.iter_any():
                    await response.write(piece)
            await response.write_eof()
            return response

    def _forget_write(self, task: asyncio.Future[ProxyReply]) -> None:
        self._write_tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark the exception as retrieved: a client that is gone does not retrieve it

    async def _watch(
        self, request: ProxyRequest, upstream: aiohttp.ClientResponse, response: web.StreamResponse
    ) -> None:
        async def deliver(event: events.WatchEvent) -> None:
            await response.write(event.raw)

        content_type = upstream.headers.get("Content-Type", "")
        cutter = frames.cutter(content_type)
        try:
            async for piece in upstream.content.iter_any():
                for frame in cutter.feed(piece):
                    await self.interference.event(request, events.decode_event(frame, content_type), deliver)
        finally:
            if upstream.connection is not None and upstream.connection.transport is not None:
                upstream.connection.transport.abort()  # a TLS shutdown would wait for the API server
        if incomplete_event := cutter.remainder():
            await response.write(incomplete_event)

    async def _send(self, request: ProxyRequest) -> ProxyReply:
        async with self._request_upstream(request) as response:
            return ProxyReply(response.status, _forwarded_headers(response.headers), await response.read())

    def _request_upstream(self, request: ProxyRequest, *, whole: bool = True) -> aiohttp.client._RequestContextManager:
        assert self._session is not None, "use `async with Proxy(…)`"
        headers = _without_headers(request.headers, HOP_BY_HOP if whole else HOP_BY_HOP | {"accept-encoding"})
        if (token := self._upstream.token()) and "Authorization" not in headers:
            headers["Authorization"] = token
        query = f"?{request.query}" if request.query else ""
        return self._session.request(
            request.method,
            URL(f"{self._upstream.server}{request.path}{query}", encoded=True),
            headers=headers,
            data=io.BytesIO(request.body) if request.body else None,
            allow_redirects=False,
            server_hostname=self._upstream.tls_server_name,
        )


async def _read(received: web.BaseRequest) -> ProxyRequest:
    url = received.rel_url
    path, query = url.raw_path, url.raw_query_string
    call = calls.parse_call(received.method, url.path, dict(parse_qsl(query)))
    body = await received.content.read()  # unlike received.read(), without a limit on the length
    return ProxyRequest(call, received.method, path, query, received.headers, body)


def _response(reply: ProxyReply) -> web.Response:
    return web.Response(status=reply.status, headers=reply.headers, body=reply.body)


def _forwarded_headers(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return _without_headers(headers, HOP_BY_HOP | {"content-length"})


def _without_headers(headers: Mapping[str, str], names: frozenset[str]) -> CIMultiDict[str]:
    """Return a copy. A header that was sent several times keeps all its values."""
    return CIMultiDict((key, value) for key, value in headers.items() if key.lower() not in names)


def _abort(received: web.BaseRequest) -> None:
    if received.transport is not None:
        received.transport.abort()
