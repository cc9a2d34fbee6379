"""The dry-run client, which sends many requests at the same time, with `dryRun=All` unless they only read, and returns
the API server's responses.

A webhook can see that a request is a dry run. Every request that is rejected as a dry run is therefore repeated without
dryRun: a webhook that rejects only dry runs is detected, and if the webhook rejects the repeated request too, nothing
is stored.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from conformance.grove.refusals import FieldError, field_errors
from conformance.suite.scenes.api import Api, NotServed, Object
from kube.client import JSON, JSON_PATCH, MERGE_PATCH, Answer, Client
from kube.resource import Resource

MAX_IN_FLIGHT = 8
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Request:
    """One request. `user` is impersonated, with the rights of a cluster administrator."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    user: str = ""
    dry_run: bool = True
    unsent_reason: str = ""
    """The reason why the request is not sent; empty if it is sent."""

    @property
    def repeatable(self) -> bool:
        """Return whether the request can be repeated without dryRun."""
        return self.dry_run and not self.unsent_reason


@dataclass(frozen=True)
class Reply:
    """The response to a request. `errors` are the field errors whose field and kind can be parsed."""

    status: int
    object: Object = field(default_factory=dict)
    message: str = ""
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Return whether the request was accepted."""
        return self.status < 400

    @property
    def refused(self) -> bool:
        """Return whether the request was rejected with a reason. A 500 is not a rejection: the webhook has failed or
        cannot be reached."""
        return self.status in (400, 403, 422)

    def __str__(self) -> str:
        if self.accepted:
            return f"accepted, although {self.message[:600]}" if self.message else "accepted"
        return f"{self.status}: {self.message[:600]}"


class DryRun:
    """Sends requests on behalf of one test."""

    def __init__(self, api: Api, namespace: str, completed: Callable[[Object], Object] = lambda obj: obj) -> None:
        """`completed` adds the labels and annotations to an object that the implementation needs."""
        self._api, self._namespace, self._completed = api, namespace, completed

    def create(self, obj: Object, *, bare: bool = False, **options: Any) -> Request:
        """Create an object, in the test's namespace unless the object names another namespace or is cluster-scoped.
        With `bare`, nothing is added to the object."""

        obj = obj if bare else self._completed(obj)

        def request(resource: Resource) -> Request:
            namespace = self._namespace_of(resource, obj)
            with_namespace = (
                {**obj, "metadata": {**obj.get("metadata", {}), "namespace": namespace}} if namespace else obj
            )
            return Request("POST", resource.path(namespace), with_namespace, **options)

        return _served(lambda: request(self._api.of_object(obj)))

    def replace_spec(self, obj: Object, **options: Any) -> Request:
        """Replace the spec, labels and annotations of an existing object by those of `obj`. The request is a JSON
        patch, which needs no resourceVersion and keeps the operator's finalizers."""
        obj = self._completed(obj)

        def request(resource: Resource) -> Request:
            metadata = obj["metadata"]
            operations = [
                {"op": "replace", "path": "/spec", "value": obj.get("spec")},
                {"op": "add", "path": "/metadata/labels", "value": metadata.get("labels") or {}},
                {"op": "add", "path": "/metadata/annotations", "value": metadata.get("annotations") or {}},
            ]
            path = resource.path(self._namespace_of(resource, obj), metadata["name"])
            return Request("PATCH", path, operations, JSON_PATCH, **options)

        return _served(lambda: request(self._api.of_object(obj)))

    def patch(
        self, plural: str, name: str, body: Mapping[str, Any], subresource: str | None = None, **options: Any
    ) -> Request:
        """Apply a JSON merge patch."""

        def request(resource: Resource) -> Request:
            path = resource.path(self._namespace_of(resource, {}), name, subresource)
            return Request("PATCH", path, dict(body), MERGE_PATCH, **options)

        return _served(lambda: request(self._api.of_plural(plural)))

    def get(self, plural: str, name: str, **options: Any) -> Request:
        """Read an object."""

        def request(resource: Resource) -> Request:
            return Request("GET", resource.path(self._namespace_of(resource, {}), name), dry_run=False, **options)

        return _served(lambda: request(self._api.of_plural(plural)))

    def delete(self, plural: str, name: str, **options: Any) -> Request:
        """Delete an object."""

        def request(resource: Resource) -> Request:
            return Request("DELETE", resource.path(self._namespace_of(resource, {}), name), **options)

        return _served(lambda: request(self._api.of_plural(plural)))

    def ask(self, request: Request) -> Reply:
        """Send one request and return the reply."""
        return self.all([request])[0]

    def all(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies in the order of the requests. A few requests are in flight at the same time. Rejected dry
        runs are then repeated without dryRun; if the repeated request is accepted, its response is the reply, and an
        object that it created is deleted."""
        replies = self._send(requests)
        refused_numbers = [n for n, reply in enumerate(replies) if requests[n].repeatable and reply.refused]
        real_requests = [dataclasses.replace(requests[n], dry_run=False) for n in refused_numbers]
        for n, reply in zip(refused_numbers, self._send(real_requests), strict=True):
            if reply.accepted:
                replies[n] = dataclasses.replace(reply, message=f"a dry run was refused ({replies[n]})")
        created = [replies[n].object for n in refused_numbers if replies[n].accepted and requests[n].method == "POST"]
        self._send([dataclasses.replace(self._removal(obj), dry_run=False) for obj in created])
        return replies

    def _send(self, requests: Sequence[Request]) -> list[Reply]:
        return [_reply(answer) for answer in self._api.work(lambda client: _all(client, requests))] if requests else []

    def _removal(self, obj: Object) -> Request:
        resource = self._api.of_object(obj)
        return Request("DELETE", resource.path(self._namespace_of(resource, obj), obj["metadata"]["name"]))

    def _namespace_of(self, resource: Resource, obj: Object) -> str | None:
        return (obj.get("metadata", {}).get("namespace") or self._namespace) if resource.namespaced else None


def _served(request: Callable[[], Request]) -> Request:
    """Return the request or, if the API server does not serve the kind, a request that is not sent."""
    try:
        return request()
    except NotServed as error:
        return Request("GET", "", unsent_reason=str(error))


async def _all(client: Client, requests: Sequence[Request]) -> list[Answer]:
    semaphore = asyncio.Semaphore(MAX_IN_FLIGHT)

    async def send_one(request: Request) -> Answer:
        if request.unsent_reason:
            return Answer(404, orjson.dumps({"kind": "Status", "message": request.unsent_reason}))
        headers = {"Impersonate-User": request.user, "Impersonate-Group": "system:masters"} if request.user else {}
        async with semaphore:
            return await client.exchange(
                request.method,
                request.path,
                params={"dryRun": "All"} if request.dry_run else None,
                body=request.body,
                content_type=request.content_type,
                headers=headers,
            )

    return await asyncio.gather(*(send_one(request) for request in requests))


def _reply(answer: Answer) -> Reply:
    warnings = tuple(re.sub(r"\\(.)", r"\1", text) for header in answer.warnings for text in _WARNING.findall(header))
    if answer.status < 400:
        return Reply(answer.status, orjson.loads(answer.content), warnings=warnings)
    error = answer.error()
    return Reply(
        answer.status,
        message=" ".join(error.message.split()),
        errors=tuple(field_errors(error.message, error.details)),
        warnings=warnings,
    )
