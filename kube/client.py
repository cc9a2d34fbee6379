"""An asynchronous client that sends and receives JSON bytes; the caller decodes them."""

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
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The media type of a list whose items have only their metadata."""

MAX_IN_FLIGHT = 16
"""Maximum number of concurrent requests of a client. With 64 instead of 16, an API server on two cores serves no more
requests per second, but its watches fall behind. The API server closes a watch that has had 10 to 20 events pending for
longer than 0.1 s. A watch that then resumes from an old resource version is closed again before it has caught up."""

Body = Mapping[str, Any] | list[Any] | bytes


def _encode(body: Body) -> bytes:
    return body if isinstance(body, bytes) else orjson.dumps(body)


@dataclass(frozen=True)
class Answer:
    """A response of the API server. `warnings` holds the values of its Warning headers, unparsed."""

    status: int
    content: bytes
    warnings: tuple[str, ...] = ()
    retry_after: str | None = None

    def error(self) -> ApiError:
        """Return the error for a response with a status of 400 or more."""
        return ApiError.of(self.status, self.content, self.retry_after)


class Client:
    """A client of one API server. Use it as an async context manager, inside one event loop.

    `in_flight` limits concurrent requests, watches excluded. There is no other client-side limit; the time that
    requests wait for their turn is added up in `seconds_queued`. `timeout` is the limit in seconds for one request, not
    counting that wait.
    """

    def __init__(
        self, connection: config.Connection, *, user_agent: str, in_flight: int = MAX_IN_FLIGHT, timeout: float = 60.0
    ) -> None:
        self._connection = connection
        # Compressing a response costs more than sending it over loopback.
        self._headers = {"User-Agent": user_agent, "Accept": JSON, "Accept-Encoding": "identity"}
        self._in_flight, self._timeout = in_flight, timeout
        self._request_slots: asyncio.Semaphore | None = None
        self.seconds_queued = 0.0
        self.before_write: Callable[[], None] | None = None
        """Called before each request other than GET. If it raises, the request is not sent, and the exception
        propagates to the caller."""
        self.on_answer: Callable[[str, int], None] | None = None
        """Called with the method and the status of each response; the status is 0 if there was no response."""
        self._session: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None

    @classmethod
    def from_kubeconfig(
        cls, path: Path | str | config.Connection, *, user_agent: str, in_flight: int = MAX_IN_FLIGHT
    ) -> Client:
        """Return a client for the current context of a kubeconfig file, or for a loaded `Connection`."""
        return cls(config.load(path), user_agent=user_agent, in_flight=in_flight)

    async def __aenter__(self) -> Client:
        import aiohttp  # imported here: it is slow to import, and most commands that import this module make no request

        def session(limit: int) -> aiohttp.ClientSession:
            tls = self._connection.tls
            connector = aiohttp.TCPConnector(ssl=tls if tls is not None else True, limit=limit)
            timeout = aiohttp.ClientTimeout(total=self._timeout)
            return aiohttp.ClientSession(connector=connector, headers=self._headers, timeout=timeout)

        self._session, self._watches = session(self._in_flight), session(0)
        self._request_slots = asyncio.Semaphore(self._in_flight)
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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
        """Send one request and return the body of the response. Raises ApiError for a status of 400 or more,
        aiohttp.ClientError for a broken connection, and TimeoutError after the client's `timeout`."""
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
        """Send one request and return the whole response, regardless of its status. Raises the errors of `request`
        except ApiError."""
        assert self._session is not None and self._request_slots is not None, "use `async with Client(…)`"
        send = {"Content-Type": content_type, **self._authorization(), **(headers or {})}
        data = None if body is None else _encode(body)
        queued_at = time.monotonic()
        async with self._request_slots:
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
                    content = nesting.limit_depth(await response.read(), path)
                    retry_after = response.headers.get("Retry-After")
                    return Answer(status, content, tuple(response.headers.getall("Warning", ())), retry_after)
            finally:
                if self.on_answer is not None:
                    self.on_answer(method, status)

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[aiohttp.StreamReader]:
        """Open a long-lived response (a watch), from which the caller reads chunks."""
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
                # Abort the connection of an unfinished watch. A TLS shutdown would wait for the peer, and an event loop
                # that ends in the meantime would leave the socket open.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

    async def version(self) -> tuple[int, int]:
        """Read the major and minor version of the API server, such as (1, 37)."""
        answer = orjson.loads(await self.request("GET", "/version"))
        return int(answer["major"]), int(re.sub(r"\D.*", "", answer["minor"]))  # some distributors report "37+"

    async def get(self, resource: Resource, namespace: str | None, name: str, subresource: str | None = None) -> bytes:
        """Return one object, or one of its subresources."""
        return await self.request("GET", resource.path(namespace, name, subresource))

    async def get_or_none(self, resource: Resource, namespace: str | None, name: str) -> bytes | None:
        """Return one object, or None if it does not exist."""
        try:
            return await self.get(resource, namespace, name)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def list(
        self, resource: Resource, namespace: str | None = None, *, selector: str | None = None
    ) -> list[dict[str, Any]]:
        """Return all items as dicts. For tools and tests; hot paths use the informer cache."""
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
        """Create an object. The namespace and, for a subresource, the name default to those in the object's
        metadata."""
        metadata = body.get("metadata", {})
        target_namespace = namespace if namespace is not None else metadata.get("namespace")
        name = metadata.get("name") if subresource else None
        return await self.request("POST", resource.path(target_namespace, name, subresource), body=body)

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
        """Patch an object, by JSON merge patch unless `content_type` names another patch type."""
        return await self.request(
            "PATCH", resource.path(namespace, name, subresource), body=body, content_type=content_type
        )

    async def apply(self, resource: Resource, body: Mapping[str, Any], *, manager: str, force: bool = True) -> bytes:
        """Apply `body` server-side: create the object, or set the fields that `body` contains."""
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
        """Delete an object; a missing object is not an error. With `uid` or a resource `version` as preconditions, an
        object with another UID or another resource version is not deleted."""
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
