"""The webhook server: HTTPS on loopback, with one path for each webhook. Every request gets a response."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import orjson
from aiohttp import web

from kube import nesting
from reference_impl.admission import authorizer, podcliqueset, scaling, topologybinding
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.rules.topology import Levels
from reference_impl.plan import defaults
from reference_impl.runtime.configuration import Configuration

log = logging.getLogger(__name__)
MAX_OBJECT_SIZE = 3 * 1024 * 1024
"""Maximum size in bytes of an object that the API server accepts."""
MAX_REVIEW_SIZE = 2 * MAX_OBJECT_SIZE + 64 * 1024
"""Maximum size in bytes of an AdmissionReview: the new object, the old object and the envelope."""

Request = Mapping[str, Any]
Hook = Callable[[Request], Awaitable[AdmissionResult]]


class WebhookMetrics(Protocol):
    """Measures admission requests."""

    def measure_webhook(self, path: str) -> AbstractContextManager[None]:
        """Measure one admission request."""
        ...


class Lookup(Protocol):
    """The queries of the webhooks."""

    async def levels(self, binding: str) -> Levels | None:
        """Return the domains of a ClusterTopologyBinding, or None if the binding does not exist."""
        ...

    async def pod_clique_set(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a PodCliqueSet as JSON, or None if it does not exist."""

    async def labels(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return the labels of an object of one of Grove's kinds, or None if the object does not exist."""
        ...


class Hooks:
    """The webhooks, by path (spec ADM-01). `user` is the operator's own user name."""

    def __init__(self, settings: Configuration, cluster: Lookup, user: str) -> None:
        self._settings, self._cluster = settings, cluster
        self._exempt_users = {user, *settings.authorizer.exempt_service_account_user_names}
        self.by_path: dict[str, Hook] = {
            "/webhooks/default-podcliqueset": self._default,
            "/webhooks/validate-podcliqueset": self._validate_set,
            "/webhooks/validate-clustertopology": self._validate_binding,
            "/webhooks/validate-scaling": self._validate_scaling,
        }
        if settings.authorizer.enabled:
            self.by_path["/webhooks/authorizer-webhook"] = self._authorize

    async def review(self, hook: Hook, body: bytes) -> dict[str, Any]:
        """Return the response to an AdmissionReview, also for an internal error."""
        request: Any = None
        try:
            review = orjson.loads(nesting.limit_depth(body, "a review"))
            request = review.get("request") if isinstance(review, dict) else None
        except orjson.JSONDecodeError:
            pass
        if not isinstance(request, dict):
            return AdmissionResult(refusal="the request is no AdmissionReview", code=400).response("")
        uid = request.get("uid")
        try:
            verdict = await hook(request)
        except Exception as error:
            log.exception("a hook failed")
            verdict = AdmissionResult(refusal=f"the hook failed: {type(error).__name__}: {error}", code=500)
        return verdict.response(uid if isinstance(uid, str) else "")

    async def _default(self, request: Request) -> AdmissionResult:
        document = request.get("object")
        return AdmissionResult(
            patch=defaults.patch(document, request.get("oldObject")) if isinstance(document, dict) else []
        )

    async def _validate_set(self, request: Request) -> AdmissionResult:
        new = request.get("object")
        old = request.get("oldObject") if request.get("operation") == "UPDATE" else None
        binding_levels = {}
        if self._settings.topology_aware_scheduling.enabled:
            for name in podcliqueset.binding_names(new, old):
                if (levels := await self._cluster.levels(name)) is not None:
                    binding_levels[name] = levels
        return podcliqueset.judge(new, old, self._settings, binding_levels)

    async def _validate_binding(self, request: Request) -> AdmissionResult:
        return topologybinding.judge(request.get("object"), self._settings)

    async def _validate_scaling(self, request: Request) -> AdmissionResult:
        if not scaling.changes_replicas(request):
            return AdmissionResult()
        namespace, object_labels = str(request.get("namespace") or ""), None
        if request.get("subResource") == scaling.SCALE:
            resource = request.get("resource")
            plural = str(resource.get("resource")) if isinstance(resource, Mapping) else ""
            object_labels = await self._cluster.labels(plural, namespace, str(request.get("name") or ""))
        pcs_name = scaling.parent_name(request, object_labels)
        pcs = None if pcs_name is None else await self._cluster.pod_clique_set(namespace, pcs_name)
        return scaling.judge(request, pcs)

    async def _authorize(self, request: Request) -> AdmissionResult:
        parent_key = authorizer.find_parent_set(request)
        pcs = None if parent_key is None else await self._cluster.pod_clique_set(*parent_key)
        return authorizer.judge(request, pcs, self._exempt_users)


@asynccontextmanager
async def serve(port: int, certificates: Path, hooks: Hooks, metrics: WebhookMetrics) -> AsyncIterator[None]:
    """Serve the webhooks on 127.0.0.1 with `tls.crt` and `tls.key` from the folder `certificates`."""

    def handler(path: str, hook: Hook) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            if (length := request.content_length or 0) > MAX_REVIEW_SIZE:  # before reading any of the body
                raise web.HTTPRequestEntityTooLarge(MAX_REVIEW_SIZE, length)
            with metrics.measure_webhook(path):
                return web.json_response(
                    await hooks.review(hook, await request.read()), dumps=lambda value: orjson.dumps(value).decode()
                )

        return answer

    app = web.Application(client_max_size=MAX_REVIEW_SIZE)
    app.add_routes([web.post(path, handler(path, hook)) for path, hook in hooks.by_path.items()])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    # The rest of a review that is too large is discarded for one second; then the connection is closed.
    runner = web.AppRunner(app, access_log=None, lingering_time=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()
