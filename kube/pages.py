"""Pages over HTTP on loopback, such as those for health and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def serve(port: int, pages: Mapping[str, Handler]) -> AsyncIterator[None]:
    """Serve pages, by their paths, on a port of 127.0.0.1. Requests are not logged."""
    app = web.Application()
    app.add_routes([web.get(path, handler) for path, handler in pages.items()])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield
    finally:
        await runner.cleanup()
