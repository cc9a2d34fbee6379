"""At its start the operator waits for an API server that does not answer yet, and says so in one line."""

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

from kube.errors import ApiError
from reference_impl.runtime.waiting import answered
from tests.kube.scripted import Answer, Naps, Scripted, refusal

TOO_MANY = ApiError(429, "TooManyRequests", "storage is (re)initializing", {}, 1.0)
PASSING = [
    TOO_MANY,
    ApiError(503, "ServiceUnavailable", "", {}, None),
    ConnectionRefusedError(111, "refused"),
    aiohttp.ServerDisconnectedError(),
    TimeoutError(),
]


@pytest.mark.parametrize("error", PASSING, ids=repr)
async def test_a_passing_error_is_waited_out_with_one_line(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    results = iter([error, error, "yes"])

    async def ask() -> str:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    naps = Naps()
    with caplog.at_level(logging.INFO):
        assert await answered(ask, sleep=naps) == "yes"
    assert len(naps.taken) == 2
    assert len(caplog.records) == 1 and "does not answer yet" in caplog.text
    assert naps.taken == [1.0, 1.0] or error is not TOO_MANY


async def test_a_refusal_for_good_is_raised() -> None:
    async def ask() -> str:
        raise ApiError(403, "Forbidden", "", {}, None)

    with pytest.raises(ApiError, match="403"):
        await answered(ask, sleep=Naps())


TOPOLOGY = "topologyAwareScheduling: {enabled: true}\n"


async def _started(tmp_path: Path, address: str) -> asyncio.subprocess.Process:
    kubeconfig, config = tmp_path / "kubeconfig", tmp_path / "config.yaml"
    kubeconfig.write_text(
        f"{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: {address}}}}}], "
        "contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}\n"
    )
    config.write_text(TOPOLOGY)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--kubeconfig", str(kubeconfig), "--health-port", str(port), "--config", str(config))
    command = (sys.executable, "-m", "reference_impl", "operator", *options)
    return await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)


async def test_the_operator_outlives_an_api_server_that_is_not_ready(tmp_path: Path) -> None:
    server = Scripted([refusal(429, "TooManyRequests"), refusal(503), Answer(b"{}")])
    async with server.serve():
        process = await _started(tmp_path, server.address)
        while len(server.requests) < 4 and process.returncode is None:  # the check is answered, the informers list
            with suppress(TimeoutError):
                await server.until_asked(4)
        process.send_signal(signal.SIGTERM)
        _, said = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert len(re.findall(rb"does not answer yet", said)) == 1
    assert b"Traceback" not in said


async def test_a_refusal_for_good_ends_the_operator_with_one_line(tmp_path: Path) -> None:
    server = Scripted([refusal(403, "Forbidden")])
    async with server.serve():
        process = await _started(tmp_path, server.address)
        _, said = await process.communicate()
    assert process.returncode == 1, said.decode()
    assert b"refused a request that the start needs" in said and b"Traceback" not in said
