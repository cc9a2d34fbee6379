"""A synchronous interface to `kube.Client` for tests: objects as dicts, resources found by discovery.

A rejection by the API server raises `kube.errors.ApiError`; no response at all raises HarnessError.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import orjson
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_fixed

from conformance import credentials
from conformance.cluster.existing.marks import with_run_label
from conformance.errors import HarnessError
from conformance.grove import refusals
from kube import discovery
from kube.client import MERGE_PATCH, Client
from kube.config import Connection
from kube.errors import ApiError
from kube.resource import PODS, Resource

T = TypeVar("T")
Object = dict[str, Any]


class NotServed(Exception):
    """The API server does not serve this kind or resource."""


class Loop:
    """An event loop in a separate thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="suite-api", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for it. Ctrl-C interrupts the wait and cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._loop.close()


class Api:
    """A client with its own user agent. `kubeconfig` is a file, or a connection that was read from one. Cluster-scoped
    objects that it creates get the label of `run`, if given."""

    def __init__(
        self,
        loop: Loop,
        kubeconfig: Path | Connection,
        user_agent: str,
        served: Mapping[str, Resource] | None = None,
        run: str = "",
    ) -> None:
        self._loop, self._kubeconfig, self._run_id = loop, kubeconfig, run
        self._client = Client.from_kubeconfig(kubeconfig, user_agent=user_agent)
        self._run(self._client.__aenter__())
        self.served: dict[str, Resource] = dict(served) if served is not None else self.discover()

    def close(self) -> None:
        """Close the client."""
        self._run(self._client.__aexit__(None, None, None))

    def discover(self) -> dict[str, Resource]:
        """Return every served resource by `plural.group` (`pods.` for the core group), in its preferred version."""
        return self._run(discovery.served_resources(self._client))

    def of_object(self, obj: Mapping[str, Any]) -> Resource:
        """Return the resource of an object by its apiVersion and kind. Raises NotServed if the API server does not
        serve it."""
        for resource in self.served.values():
            if resource.kind == obj.get("kind") and resource.api_version == obj.get("apiVersion"):
                return resource
        raise NotServed(
            f"the API server serves no {obj.get('kind')} of {obj.get('apiVersion')} (is its CRD installed?)"
        )

    def of_plural(self, plural: str) -> Resource:
        """Return the resource with a plural name (`podcliques`; `events.events.k8s.io` if the plural alone is
        ambiguous). Raises NotServed if the API server does not serve it."""
        if plural in self.served:
            return self.served[plural]
        candidates = [r for r in self.served.values() if r.plural == plural]
        if not candidates:
            raise NotServed(f"the API server serves no {plural} (is the CRD installed?)")
        return min(candidates, key=lambda r: (r.group != "", r.group))

    def create(self, obj: Mapping[str, Any]) -> Object:
        """Create an object and return it as stored. Raises ApiError if the API server rejects it."""
        resource = self.of_object(obj)
        return self._run_and_decode(self._client.create(resource, self._with_run_label(resource, obj)))

    def create_all(self, resource: Resource, objects: Iterable[Mapping[str, Any]]) -> None:
        """Create many objects at once."""

        async def run_all() -> None:
            await asyncio.gather(
                *(self._client.create(resource, self._with_run_label(resource, obj)) for obj in objects)
            )

        self._run(run_all())

    def create_with_statuses(self, objects: Iterable[Object], created: Callable[[Object, Object], None]) -> None:
        """Create many namespaced objects at once, then write their statuses. Creations that fail because a new
        namespace has no service account yet are retried. `created` is called with each object and the response to its
        creation, even if another object is rejected."""

        async def make(obj: Object) -> None:
            resource, metadata = self.of_object(obj), obj["metadata"]
            retrying = AsyncRetrying(
                retry=retry_if_exception(_lacks_service_account),
                wait=wait_fixed(0.1),
                stop=stop_after_delay(20),
                reraise=True,
            )
            created(obj, orjson.loads(await retrying(self._client.create, resource, obj)))
            if "status" in obj:
                body = {"status": obj["status"]}
                await self._client.patch(
                    resource,
                    metadata["namespace"],
                    metadata["name"],
                    body,
                    content_type=MERGE_PATCH,
                    subresource="status",
                )

        async def run_all() -> None:
            await asyncio.gather(*(make(obj) for obj in objects))

        self._run(run_all())

    def get(self, plural: str, namespace: str | None, name: str) -> Object:
        """Read an object. Raises ApiError if it does not exist."""
        return self._run_and_decode(self._client.get(self.of_plural(plural), namespace, name))

    def names(self, plural: str) -> list[str]:
        """Return the names of all objects of a cluster-scoped resource."""
        objects = self._run(self._client.list(self.of_plural(plural)))
        return [str(item["metadata"]["name"]) for item in objects]

    def holds(self, plural: str, namespace: str) -> bool:
        """Return whether a namespace has any objects of a resource."""
        return bool(self._run(self._client.list(self.of_plural(plural), namespace)))

    def patch(
        self, plural: str, namespace: str | None, name: str, body: Mapping[str, Any], subresource: str | None = None
    ) -> Object:
        """Apply a JSON merge patch and return the object. Raises ApiError if the API server rejects the patch."""
        resource = self.of_plural(plural)
        return self._run_and_decode(
            self._client.patch(resource, namespace, name, body, content_type=MERGE_PATCH, subresource=subresource)
        )

    def patch_all(self, plural: str, namespace: str | None, patches: Mapping[str, Mapping[str, Any]]) -> list[Object]:
        """Apply a JSON merge patch to each of several objects at once. Raises ApiError if the API server rejects a
        patch."""
        resource = self.of_plural(plural)

        async def run_all() -> list[bytes]:
            calls = (
                self._client.patch(resource, namespace, name, body, content_type=MERGE_PATCH)
                for name, body in patches.items()
            )
            return list(await asyncio.gather(*calls))

        return [orjson.loads(response) for response in self._run(run_all())]

    def delete(self, plural: str, namespace: str | None, names: Iterable[str], propagation: str = "Background") -> None:
        """Delete objects by name, all at once. Objects that do not exist are not an error."""
        resource = self.of_plural(plural)

        async def run_all() -> None:
            await asyncio.gather(
                *(self._client.delete(resource, namespace, name, propagation=propagation) for name in names)
            )

        self._run(run_all())

    def remove_pods(self, namespace: str) -> None:
        """Delete all pods of a namespace at once and without a grace period, so that no kubelet has to terminate them.
        Raises ApiError if the API server rejects the request."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        self._run(self._client.request("DELETE", PODS.path(namespace), body=body))

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod. Raises ApiError if the API server rejects the eviction, with status 429 if a disruption budget
        forbids it."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        self._run(self._client.create(PODS, body, subresource="eviction"))

    def complaint(self, seconds: float) -> str:
        """Return the reason why the API server does not report within `seconds` that it is ready; empty if it does."""

        async def request_readiness() -> None:
            async with asyncio.timeout(seconds):
                await self._client.request("GET", "/readyz")

        try:
            self._loop.run(request_readiness())
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            return str(error) or type(error).__name__
        return ""

    def work(self, action: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Run an action that needs direct access to the client."""
        return self._run(action(self._client))

    def _with_run_label(self, resource: Resource, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        return obj if resource.namespaced else with_run_label(obj, self._run_id)

    def _run_and_decode(self, work: Coroutine[Any, Any, bytes]) -> Object:
        response: Object = orjson.loads(self._run(work))
        return response

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._loop.run(work)
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise HarnessError(
                f"the API server does not answer ({type(error).__name__}: {error})", where=str(self._kubeconfig)
            ) from error


def _lacks_service_account(error: BaseException) -> bool:
    return isinstance(error, ApiError) and error.status == 403 and "serviceaccount" in error.message


def is_admission_error(error: BaseException) -> bool:
    """Return whether a webhook or an admission policy has caused an error response, or has prevented any response. The
    suite has no webhooks or policies of its own, so another program is at fault."""
    return isinstance(error, ApiError) and refusals.by_webhook(error.message)


def words(error: ApiError | NotServed) -> str:
    """Return a rejection as one line, without credentials: a webhook may have written it."""
    if isinstance(error, NotServed):
        return str(error)
    message = " ".join(credentials.redact(error.message).split())
    return f"the API server answered {error.status} {error.reason}: {message}"
