"""A scheduler extender that records which nodes have passed all filters, and prevents every pod from being bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web


class Extender:
    """The nodes that passed all filters, by pod UID. kube-scheduler does not call an extender for a pod without
    feasible nodes."""

    def __init__(self) -> None:
        self.feasible: dict[str, list[str]] = {}
        self.contradictions: list[str] = []
        """Pods for which a second scheduling attempt had a different result."""

    def forget(self) -> None:
        self.feasible.clear()
        self.contradictions.clear()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Serve on a free loopback port, and yield the URL."""
        application = web.Application(client_max_size=1 << 24)
        application.router.add_post("/filter", self._filter)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _filter(self, request: web.Request) -> web.Response:
        arguments: dict[str, Any] = orjson.loads(await request.read())
        metadata, names = arguments["Pod"]["metadata"], sorted(arguments["NodeNames"])
        if self.feasible.setdefault(metadata["uid"], names) != names:
            self.contradictions.append(f"{metadata['name']}: {self.feasible[metadata['uid']]}, then {names}")
        return web.Response(body=orjson.dumps({"NodeNames": []}), content_type="application/json")
