"""Asking the API server what it would do: requests with `dryRun=All` and reads, many at once, and what it answered."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from conformance.grove.refusals import FieldError, field_errors
from conformance.suite.api import Api, NotServed, Object
from kube.client import JSON, JSON_PATCH, MERGE_PATCH, Answer, Client
from kube.resource import Resource

AT_ONCE = 8
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Request:
    """One thing to ask. `user` is impersonated, as an administrator of the cluster."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    user: str = ""
    dry_run: bool = True
    hopeless: str = ""
    """Why it need not be asked."""


@dataclass(frozen=True)
class Reply:
    """What came back. `errors` are those of which field and kind can be told."""

    status: int
    object: Object = field(default_factory=dict)
    message: str = ""
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        return self.status < 400

    @property
    def refused(self) -> bool:
        """Refused with a reason: an answer of 500 is none, the hook has broken down or cannot be reached."""
        return self.status in (400, 403, 422)

    def __str__(self) -> str:
        return "accepted" if self.accepted else f"{self.status}: {self.message[:600]}"


class DryRun:
    """Asks in the name of one test."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace

    def create(self, obj: Object, **how: Any) -> Request:
        """To create an object; in the test's namespace unless the object says another or needs none."""

        def request(resource: Resource) -> Request:
            place = self._place(resource, obj)
            placed = {**obj, "metadata": {**obj.get("metadata", {}), "namespace": place}} if place else obj
            return Request("POST", resource.path(place), placed, **how)

        return _served(lambda: request(self._api.of_object(obj)))

    def replace_spec(self, obj: Object, **how: Any) -> Request:
        """To give an object that exists the whole spec, the labels and the annotations of `obj`. A JSON patch: it needs
        no resource version, and leaves alone what the operator has added (finalizers)."""

        def request(resource: Resource) -> Request:
            metadata = obj["metadata"]
            operations = [
                {"op": "replace", "path": "/spec", "value": obj.get("spec")},
                {"op": "add", "path": "/metadata/labels", "value": metadata.get("labels") or {}},
                {"op": "add", "path": "/metadata/annotations", "value": metadata.get("annotations") or {}},
            ]
            path = resource.path(self._place(resource, obj), metadata["name"])
            return Request("PATCH", path, operations, JSON_PATCH, **how)

        return _served(lambda: request(self._api.of_object(obj)))

    def patch(
        self, plural: str, name: str, body: Mapping[str, Any], subresource: str | None = None, **how: Any
    ) -> Request:
        """A JSON merge patch."""

        def request(resource: Resource) -> Request:
            path = resource.path(self._place(resource, {}), name, subresource)
            return Request("PATCH", path, dict(body), MERGE_PATCH, **how)

        return _served(lambda: request(self._api.of_plural(plural)))

    def get(self, plural: str, name: str, **how: Any) -> Request:
        """To read an object."""

        def request(resource: Resource) -> Request:
            return Request("GET", resource.path(self._place(resource, {}), name), dry_run=False, **how)

        return _served(lambda: request(self._api.of_plural(plural)))

    def delete(self, plural: str, name: str, **how: Any) -> Request:
        def request(resource: Resource) -> Request:
            return Request("DELETE", resource.path(self._place(resource, {}), name), **how)

        return _served(lambda: request(self._api.of_plural(plural)))

    def ask(self, request: Request) -> Reply:
        return self.all([request])[0]

    def all(self, requests: Sequence[Request]) -> list[Reply]:
        """The replies, in the order of the requests; a few are under way at the same time."""
        return [_reply(answer) for answer in self._api.work(lambda client: _all(client, requests))]

    def _place(self, resource: Resource, obj: Object) -> str | None:
        return (obj.get("metadata", {}).get("namespace") or self._namespace) if resource.namespaced else None


def _served(request: Callable[[], Request]) -> Request:
    """The request, or one that is answered here because the API server serves no such kind."""
    try:
        return request()
    except NotServed as error:
        return Request("GET", "", hopeless=str(error))


async def _all(client: Client, requests: Sequence[Request]) -> list[Answer]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(request: Request) -> Answer:
        if request.hopeless:
            return Answer(404, orjson.dumps({"kind": "Status", "message": request.hopeless}))
        headers = {"Impersonate-User": request.user, "Impersonate-Group": "system:masters"} if request.user else {}
        async with turns:
            return await client.exchange(
                request.method,
                request.path,
                params={"dryRun": "All"} if request.dry_run else None,
                body=request.body,
                content_type=request.content_type,
                headers=headers,
            )

    return await asyncio.gather(*(one(request) for request in requests))


def _reply(answer: Answer) -> Reply:
    told = tuple(re.sub(r"\\(.)", r"\1", text) for header in answer.warnings for text in _WARNING.findall(header))
    if answer.status < 400:
        return Reply(answer.status, orjson.loads(answer.content), warnings=told)
    error = answer.error()
    return Reply(
        answer.status,
        message=" ".join(error.message.split()),
        errors=tuple(field_errors(error.message, error.details)),
        warnings=told,
    )
