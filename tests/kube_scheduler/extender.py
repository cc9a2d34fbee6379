"""An extender of kube-scheduler: it learns which nodes have passed all filters, and lets no pod be bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web


class Extender:
    """The nodes that passed all filters, by the UID of the pod. A pod for which none passes is never asked for."""

    def __init__(self) -> None:
        self.feasible: dict[str, list[str]] = {}
        self.contradictions: list[str] = []
        """Pods for which a second attempt had another result."""

    def forget(self) -> None:
        self.feasible.clear()
        self.contradictions.clear()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Serve on a free port of loopback; yields the URL."""
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
