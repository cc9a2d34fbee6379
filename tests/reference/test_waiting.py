"""Tests that the operator, when it starts, waits for an API server that does not respond yet, and logs that in one
line."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from conformance.implementation.certificates import Certificates
from kube.errors import ApiError
from reference_impl.runtime.waiting import retry_until_answered
from tests.kube.scripted import RecordedSleep, ScriptedResponse, ScriptedServer, refusal

TOO_MANY = ApiError(429, "TooManyRequests", "storage is (re)initializing", {}, 1.0)
TEMPORARY_ERRORS = [
    TOO_MANY,
    ApiError(503, "ServiceUnavailable", "", {}, None),
    ConnectionRefusedError(111, "refused"),
    aiohttp.ServerDisconnectedError(),
    TimeoutError(),
]


@pytest.mark.parametrize("error", TEMPORARY_ERRORS, ids=repr)
async def test_a_temporary_error_is_waited_out_with_one_log_line(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    results = iter([error, error, "yes"])

    async def ask() -> str:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    naps = RecordedSleep()
    with caplog.at_level(logging.INFO):
        assert await retry_until_answered(ask, sleep=naps) == "yes"
    assert len(naps.waits) == 2
    assert len(caplog.records) == 1 and "does not answer yet" in caplog.text
    assert naps.waits == [1.0, 1.0] or error is not TOO_MANY


async def test_a_permanent_error_is_raised() -> None:
    async def ask() -> str:
        raise ApiError(403, "Forbidden", "", {}, None)

    with pytest.raises(ApiError, match="403"):
        await retry_until_answered(ask, sleep=RecordedSleep())


TOPOLOGY = "topologyAwareScheduling: {enabled: true}\n"


async def _start_operator(tmp_path: Path, address: str, *, webhooks: bool = False) -> asyncio.subprocess.Process:
    """Start an operator whose first request is for the bindings, or for its own user name, which the webhooks need."""
    kubeconfig, config = tmp_path / "kubeconfig", tmp_path / "config.yaml"
    kubeconfig.write_text(
        f"{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: {address}}}}}], "
        "contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}\n"
    )
    config.write_text("" if webhooks else TOPOLOGY)
    options = ["--kubeconfig", str(kubeconfig), "--health-port", str(_free_port()), "--config", str(config)]
    if webhooks:
        certificates = Certificates(tmp_path / "tls").ensure()
        options += ["--webhook-port", str(_free_port()), "--certificates", str(certificates)]
    command = (sys.executable, "-m", "reference_impl", "operator", *options)
    return await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


OWN_USER = ScriptedResponse(b'{"status": {"userInfo": {"username": "operator"}}}')


@pytest.mark.parametrize(
    ("webhooks", "path", "answer"),
    [(False, "/clustertopologybindings", ScriptedResponse(b"{}")), (True, "/selfsubjectreviews", OWN_USER)],
    ids=["bindings", "its own user name"],
)
async def test_the_operator_waits_for_an_api_server_that_is_not_ready(
    tmp_path: Path, webhooks: bool, path: str, answer: ScriptedResponse
) -> None:
    maps = ScriptedResponse(b"{}")
    server = ScriptedServer([maps, refusal(429, "TooManyRequests"), refusal(503), answer])
    async with server.serve():
        process = await _start_operator(tmp_path, server.address, webhooks=webhooks)
        while len(server.requests) < 5 and process.returncode is None:  # after the check succeeds, the informers list
            with suppress(TimeoutError):
                await server.until_asked(5)
        process.send_signal(signal.SIGTERM)
        _, output = await process.communicate()
    assert process.returncode == 0, output.decode()
    assert server.requests[0].path.endswith("/podgangmaps")
    assert all(request.path.endswith(path) for request in server.requests[1:4])
    assert len(re.findall(rb"does not answer yet", output)) == 1
    assert b"Traceback" not in output


async def test_a_permanent_error_ends_the_operator_with_one_line(tmp_path: Path) -> None:
    server = ScriptedServer([refusal(403, "Forbidden")])
    async with server.serve():
        process = await _start_operator(tmp_path, server.address)
        _, output = await process.communicate()
    assert process.returncode == 1, output.decode()
    assert b"refused a request that the start needs" in output and b"Traceback" not in output
