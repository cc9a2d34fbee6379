"""Serves the metrics of GPUs for Prometheus, by HTTP on loopback. Each response is computed from the stored objects on
demand, so a cluster on which no client reads metrics has no cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from conformance.cluster.addons import gpu_metrics
from conformance.cluster.addons.gpu_holders import GpuNumbers, simulated_gpus
from conformance.grove.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES
from kube import pages
from kube.client import Client
from kube.resource import NODES, PODS

PATH = "/metrics"


@asynccontextmanager
async def serve(client: Client, port: int) -> AsyncIterator[None]:
    """Serve metrics on a port of 127.0.0.1."""
    numbers = GpuNumbers()

    async def answer(request: web.Request) -> web.Response:
        kinds = (NODES, PODS, RESOURCE_SLICES, RESOURCE_CLAIMS)
        nodes, pods, slices, claims = await asyncio.gather(*(client.list(kind) for kind in kinds))
        body = gpu_metrics.page(simulated_gpus(nodes, pods, slices, claims, numbers))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async with pages.serve(port, {PATH: answer}):
        yield
