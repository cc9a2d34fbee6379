"""Health, readiness and metrics over HTTP on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from kube import pages
from reference_impl.runtime.metrics import Metrics


@asynccontextmanager
async def serve(port: int, ready: asyncio.Event, metrics: Metrics) -> AsyncIterator[None]:
    """Serve /healthz (200 while the process works), /readyz (200 once `ready` is set, else 503) and /metrics on
    127.0.0.1."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok") if ready.is_set() else web.Response(status=503, text="starting")

    async def metricsz(_: web.Request) -> web.Response:
        return web.Response(body=metrics.render(), headers={"Content-Type": metrics.content_type})

    async with pages.serve(port, {"/healthz": healthz, "/readyz": readyz, "/metrics": metricsz}):
        yield
