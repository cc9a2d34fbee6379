"""Tests that the webhook server reads at most as much as the API server can send, and takes time in proportion to the
size of the review."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from conformance.implementation.certificates import Certificates
from reference_impl.admission.rules import syntax
from reference_impl.admission.server import MAX_OBJECT_SIZE, MAX_REVIEW_SIZE, serve
from reference_impl.control.metrics import OperatorMetrics
from tests.reference.test_admission_hooks import hooks

PATH = "/webhooks/validate-podcliqueset"
TIMEOUT_SECONDS = 60.0


@asynccontextmanager
async def server(tmp_path: Path) -> AsyncIterator[int]:
    """Run a webhook server, and yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    async with serve(port, Certificates(tmp_path / "tls").ensure(), hooks(), OperatorMetrics()):
        yield port


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def posted(tmp_path: Path, data: Any) -> tuple[int, bytes]:
    """Return the status and body of the response to a review."""
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        server(tmp_path) as port,
        aiohttp.ClientSession() as session,
        session.post(f"https://127.0.0.1:{port}{PATH}", data=data, ssl=unverified()) as response,
    ):
        return response.status, await response.read()


async def test_a_review_that_is_too_long_is_rejected_before_it_is_read(tmp_path: Path) -> None:
    async with server(tmp_path) as port, asyncio.timeout(TIMEOUT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unverified())
        writer.write(f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {20 * 1024 * 1024}\r\n\r\n".encode())
        await writer.drain()
        assert b" 413 " in await reader.readline()
        writer.transport.abort()


async def test_a_review_without_length_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(2 * MAX_REVIEW_SIZE // 65536):
            yield bytes(65536)

    status, _ = await posted(tmp_path, endless())
    assert status == 413


async def test_two_objects_of_the_maximum_size_are_judged(tmp_path: Path) -> None:
    huge = {"metadata": {"name": "x", "annotations": {"padding": "x" * (MAX_OBJECT_SIZE - 100)}}, "spec": {}}
    request = {"uid": "u", "operation": "UPDATE", "object": huge, "oldObject": huge}
    status, answer = await posted(tmp_path, BytesIO(orjson.dumps({"request": request})))
    assert status == 200 and orjson.loads(answer)["response"]["uid"] == "u"


def test_names_are_compared_in_linear_time() -> None:
    names = [f"VARIABLE_{number}" for number in range(60_000)]
    begin = time.process_time()
    assert syntax.duplicates([*names, "VARIABLE_7", "VARIABLE_3"]) == ["VARIABLE_3", "VARIABLE_7"]
    assert time.process_time() - begin < 1
