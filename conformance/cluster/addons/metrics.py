"""The API `metrics.k8s.io`, for `kubectl top` and autoscalers: an HTTPS server on loopback behind the API server.

The API server authenticates and authorizes users, and connects with the certificate of the components; all other
clients are rejected. Each response is computed from the stored objects on demand, so a cluster on which no client reads
metrics has no cost.
"""

from __future__ import annotations

import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from tenacity import AsyncRetrying, RetryError, retry_if_result, wait_fixed

from conformance.cluster import pace
from conformance.cluster.addons import usage
from conformance.cluster.kubelet_sim import status
from conformance.cluster.nodes import is_schedulable
from conformance.errors import HarnessError
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NODES, PODS, SERVICES, Resource

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
_API = f"/apis/{GROUP}/{VERSION}"
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
_API_SERVICE = f"{VERSION}.{GROUP}"
_CHECKED_AT = "conformance.grove.io/asked"
_NAMESPACE, _NAME = "kube-system", "metrics"
_SELECTORS = ("labelSelector", "fieldSelector")

Document = dict[str, Any]


async def register(client: Client, port: int) -> None:
    """Register the metrics server, which listens on a port of loopback, with the API server. The certificate of the
    components is not for a Service name, so the API server does not verify it: if the metrics server has died, any
    process that takes its port could respond."""
    service_name = {"name": _NAME, "namespace": _NAMESPACE}
    service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    await client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": service_name, "spec": service})
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {**service_name, "port": port},
    }
    metadata = {"name": _API_SERVICE}
    document = {"apiVersion": API_SERVICES.api_version, "kind": "APIService", "metadata": metadata, "spec": spec}
    await client.create(API_SERVICES, document)


async def wait_until_served(client: Client) -> None:
    """Return when the API server serves the metrics, or immediately if they are no longer registered. Raises
    HarnessError after a minute, or later on an overloaded machine."""
    if await client.get_or_none(API_SERVICES, None, _API_SERVICE) is None:
        return
    patch = {"metadata": {"annotations": {_CHECKED_AT: status.now()}}}  # makes it check now, not after 30 s
    await client.patch(API_SERVICES, None, _API_SERVICE, patch)

    async def is_unserved() -> bool:
        # The condition Available may refer to a process that has died since.
        try:
            await client.request("GET", f"{_API}/nodes")
        except ApiError as error:
            if error.status not in (404, 503):
                raise
            return True
        return False

    try:
        await AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.1), stop=pace.stop_after(60))(is_unserved)
    except RetryError:
        raise HarnessError(f"the API server does not serve {GROUP} after 60 s") from None


@asynccontextmanager
async def serve(client: Client, port: int, pki: Path, user: str) -> AsyncIterator[None]:
    """Serve metrics on 127.0.0.1 with the certificate in `pki`. Only clients with a certificate of `user` are
    accepted."""
    app = web.Application(middlewares=[_only_user(user)])
    server = _Server(client)
    app.add_routes(
        [
            web.get(_API, server.resources),
            web.get(f"{_API}/nodes", server.nodes),
            web.get(f"{_API}/nodes/{{name}}", server.nodes),
            web.get(f"{_API}/pods", server.pods),
            web.get(f"{_API}/namespaces/{{namespace}}/pods", server.pods),
            web.get(f"{_API}/namespaces/{{namespace}}/pods/{{name}}", server.pods),
        ]
    )
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    tls.verify_mode = ssl.CERT_REQUIRED
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()


class _Server:
    """The responses, computed from the current objects of the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def resources(self, request: web.Request) -> web.Response:
        kinds_by_plural = {"nodes": ("NodeMetrics", False), "pods": ("PodMetrics", True)}
        entries = [
            {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]}
            for name, (kind, namespaced) in kinds_by_plural.items()
        ]
        document = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
        return _json_response({**document, "resources": entries})

    async def pods(self, request: web.Request) -> web.Response:
        now = status.now()
        pods = await self._list(PODS, request)
        return _objects_response(
            request, "PodMetrics", [usage.pod_metrics(pod, now) for pod in pods if usage.has_metrics(pod)]
        )

    async def nodes(self, request: web.Request) -> web.Response:
        now = status.now()
        pods_by_node: dict[str, list[Document]] = defaultdict(list)
        for pod in await self._client.list(PODS):
            if usage.has_metrics(pod):
                pods_by_node[pod["spec"]["nodeName"]].append(pod)
        nodes = [node for node in await self._list(NODES, request) if is_schedulable(node)]
        metrics = [usage.node_metrics(node, pods_by_node[node["metadata"]["name"]], now) for node in nodes]
        return _objects_response(request, "NodeMetrics", metrics)

    async def _list(self, resource: Resource, request: web.Request) -> list[Document]:
        """Return the requested objects."""
        params = {key: request.query[key] for key in _SELECTORS if key in request.query}
        if name := request.match_info.get("name"):
            params = {"fieldSelector": f"metadata.name={name}"}
        path = resource.path(request.match_info.get("namespace"))
        items: list[Document] = orjson.loads(await self._client.request("GET", path, params=params))["items"]
        return items


def _only_user(user: str) -> Any:
    """Return a middleware that rejects all other users, because they also have certificates of the cluster."""

    @web.middleware
    async def check(request: web.Request, handler: Any) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert") or {}
        names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        if names != [user]:
            return _failure_response(403, "Forbidden", f"only {user} may connect")
        response: web.StreamResponse = await handler(request)
        return response

    return check


def _objects_response(request: web.Request, kind: str, items: Iterable[Document]) -> web.Response:
    """Return a list response, or a single object if the request names one."""
    typed_items = [{"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", **item} for item in items]
    if name := request.match_info.get("name"):
        return (
            _json_response(typed_items[0])
            if typed_items
            else _failure_response(404, "NotFound", f"{kind} {name} not found")
        )
    return _json_response(
        {"kind": f"{kind}List", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": typed_items}
    )


def _failure_response(code: int, reason: str, message: str) -> web.Response:
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return _json_response({**document, "code": code}, code)


def _json_response(document: Document, code: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=code, content_type="application/json")
