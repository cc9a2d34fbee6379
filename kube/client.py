"""An asynchronous client that sends and receives JSON bytes. Decoding is left to the caller."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import orjson

from kube import config, nesting
from kube.errors import ApiError
from kube.resource import Resource

if TYPE_CHECKING:
    import aiohttp

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML

IN_FLIGHT = 16
"""Requests that a client has under way at most. An API server on two cores answers no more of them a second when there
are 64, but its watches wait behind them. It closes a watch that 10 to 20 events wait for longer than 0.1 s, and a watch
that starts behind the present is closed again before it has caught up."""

Body = Mapping[str, Any] | list[Any] | bytes


def _encode(body: Body) -> bytes:
    return body if isinstance(body, bytes) else orjson.dumps(body)


@dataclass(frozen=True)
class Answer:
    """An answer of the API server. `warnings` are its Warning headers, unparsed."""

    status: int
    content: bytes
    warnings: tuple[str, ...] = ()
    retry_after: str | None = None

    def error(self) -> ApiError:
        """The error for an answer with a status of 400 or more."""
        return ApiError.of(self.status, self.content, self.retry_after)


class Client:
    """A client of one API server. Use as an async context manager, inside one event loop.

    `in_flight` limits concurrent requests, watches excluded. There is no other client-side limit; the time spent
    waiting for it is counted (`seconds_queued`). `timeout` is the limit in seconds of one request, not counting that
    wait.
    """

    def __init__(
        self, connection: config.Connection, *, user_agent: str, in_flight: int = IN_FLIGHT, timeout: float = 60.0
    ) -> None:
        self._connection = connection
        # Compressing an answer costs more than sending it over loopback.
        self._headers = {"User-Agent": user_agent, "Accept": JSON, "Accept-Encoding": "identity"}
        self._in_flight, self._timeout = in_flight, timeout
        self._turns: asyncio.Semaphore | None = None
        self.seconds_queued = 0.0
        self.before_write: Callable[[], None] | None = None
        """Called before each request other than GET; an exception prevents the request and is raised to the caller."""
        self.on_answer: Callable[[str, int], None] | None = None
        """Called with method and status of each answer; the status is 0 if there was none."""
        self._session: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None

    @classmethod
    def from_kubeconfig(
        cls, path: Path | str | config.Connection, *, user_agent: str, in_flight: int = IN_FLIGHT
    ) -> Client:
        """A client for the current context of a kubeconfig file, or for one that was read before."""
        return cls(config.load(path), user_agent=user_agent, in_flight=in_flight)

    async def __aenter__(self) -> Client:
        import aiohttp  # here: most commands that know clients make no request, and it is slow to import

        def session(limit: int) -> aiohttp.ClientSession:
            tls = self._connection.tls
            connector = aiohttp.TCPConnector(ssl=tls if tls is not None else True, limit=limit)
            timeout = aiohttp.ClientTimeout(total=self._timeout)
            return aiohttp.ClientSession(connector=connector, headers=self._headers, timeout=timeout)

        self._session, self._watches = session(self._in_flight), session(0)
        self._turns = asyncio.Semaphore(self._in_flight)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in (self._session, self._watches):
            if session is not None:
                await session.close()
        self._session = self._watches = None

    def _authorization(self) -> dict[str, str]:
        token = self._connection.token()
        return {"Authorization": token} if token else {}

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Body | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send one request and return the body of the answer. Raises ApiError for a status of 400 or more,
        aiohttp.ClientError for a broken connection, TimeoutError after the client's `timeout`."""
        answer = await self.exchange(method, path, params=params, body=body, content_type=content_type, headers=headers)
        if answer.status >= 400:
            raise answer.error()
        return answer.content

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Body | None = None,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Like `request`, but return the whole answer, also for a refusal."""
        assert self._session is not None and self._turns is not None, "use `async with Client(…)`"
        send = {"Content-Type": content_type, **self._authorization(), **(headers or {})}
        data = None if body is None else _encode(body)
        queued_at = time.monotonic()
        async with self._turns:
            self.seconds_queued += time.monotonic() - queued_at
            if self.before_write is not None and method != "GET":
                self.before_write()
            status = 0
            try:
                async with self._session.request(
                    method,
                    self._connection.server + path,
                    params=params,
                    data=data,
                    headers=send,
                    server_hostname=self._connection.tls_server_name,
                ) as response:
                    status = response.status
                    content = nesting.bounded(await response.read(), path)
                    retry_after = response.headers.get("Retry-After")
                    return Answer(status, content, tuple(response.headers.getall("Warning", ())), retry_after)
            finally:
                if self.on_answer is not None:
                    self.on_answer(method, status)

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[aiohttp.StreamReader]:
        """Open a long-lived response (a watch); the caller reads chunks."""
        assert self._watches is not None, "use `async with Client(…)`"
        import aiohttp

        async with self._watches.get(
            self._connection.server + path,
            params=params,
            headers=self._authorization(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            server_hostname=self._connection.tls_server_name,
        ) as response:
            if self.on_answer is not None:
                self.on_answer("WATCH", response.status)
            if response.status >= 400:
                raise ApiError.of(response.status, await response.read(), response.headers.get("Retry-After"))
            try:
                yield response.content
            finally:
                # Abort the connection of an unfinished watch. A TLS shutdown would wait for the peer, and a loop that
                # ends meanwhile would leave the socket open.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

    async def version(self) -> tuple[int, int]:
        """Read the major and minor version of the API server, such as (1, 37)."""
        answer = orjson.loads(await self.request("GET", "/version"))
        return int(answer["major"]), int(re.sub(r"\D.*", "", answer["minor"]))  # "37+" of some distributors

    async def get(self, resource: Resource, namespace: str | None, name: str, subresource: str | None = None) -> bytes:
        """Read one object, or a subresource of it."""
        return await self.request("GET", resource.path(namespace, name, subresource))

    async def get_or_none(self, resource: Resource, namespace: str | None, name: str) -> bytes | None:
        """Like `get`; None if there is no such object."""
        try:
            return await self.get(resource, namespace, name)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def list(
        self, resource: Resource, namespace: str | None = None, *, selector: str | None = None
    ) -> list[dict[str, Any]]:
        """List all items as dicts. For tools and tests; hot paths use the watch cache."""
        params = {"labelSelector": selector} if selector else None
        answer = orjson.loads(await self.request("GET", resource.path(namespace), params=params))
        items: list[dict[str, Any]] = answer["items"]
        return items

    async def create(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> bytes:
        """Create an object. Namespace and (for a subresource) name default to those of its metadata."""
        metadata = body.get("metadata", {})
        place = namespace if namespace is not None else metadata.get("namespace")
        name = metadata.get("name") if subresource else None
        return await self.request("POST", resource.path(place, name, subresource), body=body)

    async def replace(self, resource: Resource, body: Mapping[str, Any], *, subresource: str | None = None) -> bytes:
        """Replace an object; a `resourceVersion` in its metadata guards against conflicts."""
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        return await self.request("PUT", path, body=body)

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Body,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str | None = None,
    ) -> bytes:
        """Patch by JSON merge patch, unless `content_type` says otherwise."""
        return await self.request(
            "PATCH", resource.path(namespace, name, subresource), body=body, content_type=content_type
        )

    async def apply(self, resource: Resource, body: Mapping[str, Any], *, manager: str, force: bool = True) -> bytes:
        """Server-side apply: create or change exactly the given fields."""
        metadata = body["metadata"]
        return await self.request(
            "PATCH",
            resource.path(metadata.get("namespace"), metadata["name"]),
            params={"fieldManager": manager, "force": "true" if force else "false"},
            body=body,
            content_type=APPLY_PATCH,
        )

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete an object; a missing object is no error. With `uid` only that very object is deleted, and with a
        resource `version` only in that state."""
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation,
        }
        if preconditions := {k: v for k, v in (("uid", uid), ("resourceVersion", version)) if v is not None}:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            await self.request("DELETE", resource.path(namespace, name), body=options)
        except ApiError as error:
            if not error.not_found:
                raise
