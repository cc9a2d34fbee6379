"""The webhook server: HTTPS on loopback, one path a hook."""

from __future__ import annotations

import base64
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from reference_impl.plan import defaults

log = logging.getLogger(__name__)
DEFAULT_PATH = "/webhooks/default-podcliqueset"


def review(request: dict[str, Any]) -> dict[str, Any]:
    """Answers an AdmissionReview for the defaulting hook: always allowed, with what is missing added."""
    asked = request.get("request") or {}
    operations = defaults.patch(asked.get("object") or {})
    response: dict[str, Any] = {"uid": asked.get("uid", ""), "allowed": True}
    if operations:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(operations)).decode()}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


@asynccontextmanager
async def serving(port: int, certificates: Path) -> AsyncIterator[None]:
    """Serves the hooks on 127.0.0.1 with `tls.crt` and `tls.key` of the folder `certificates`."""

    async def default(request: web.Request) -> web.Response:
        return web.json_response(review(orjson.loads(await request.read())))

    app = web.Application(client_max_size=8 * 1024 * 1024)
    app.add_routes([web.post(DEFAULT_PATH, default)])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()
