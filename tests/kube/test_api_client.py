"""Tests of the client: methods, paths, content types, error responses and limits."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import orjson
import pytest
from scripted import ScriptedResponse, held_open, page, pod, refusal, serving, watch

from kube.client import APPLY_PATCH, JSON_PATCH, STRATEGIC_PATCH, Client
from kube.config import Connection
from kube.errors import ApiError
from kube.resource import NODES, PODS

A = pod("a", 1)
NS = "/api/v1/namespaces/ns/pods"
CALLS: dict[str, tuple[Callable[[Client], Awaitable[Any]], tuple[str, str, str, Any]]] = {
    "create": (lambda c: c.create(PODS, A), ("POST", NS, "application/json", A)),
    "create elsewhere": (
        lambda c: c.create(PODS, A, namespace="other"),
        ("POST", "/api/v1/namespaces/other/pods", "application/json", A),
    ),
    "create a binding": (
        lambda c: c.create(PODS, A, subresource="binding"),
        ("POST", f"{NS}/a/binding", "application/json", A),
    ),
    "replace": (lambda c: c.replace(PODS, A), ("PUT", f"{NS}/a", "application/json", A)),
    "replace the status": (
        lambda c: c.replace(PODS, A, subresource="status"),
        ("PUT", f"{NS}/a/status", "application/json", A),
    ),
    "merge patch": (
        lambda c: c.patch(PODS, "ns", "a", {"x": None}),
        ("PATCH", f"{NS}/a", "application/merge-patch+json", {"x": None}),
    ),
    "JSON patch": (
        lambda c: c.patch(PODS, "ns", "a", [{"op": "remove"}], content_type=JSON_PATCH, subresource="status"),
        ("PATCH", f"{NS}/a/status", "application/json-patch+json", [{"op": "remove"}]),
    ),
    "strategic patch": (
        lambda c: c.patch(PODS, "ns", "a", b'{"y":1}', content_type=STRATEGIC_PATCH),
        ("PATCH", f"{NS}/a", "application/strategic-merge-patch+json", {"y": 1}),
    ),
    "apply": (
        lambda c: c.apply(PODS, A, manager="m"),
        ("PATCH", f"{NS}/a?fieldManager=m&force=true", APPLY_PATCH, A),
    ),
    "apply gently": (
        lambda c: c.apply(PODS, A, manager="m", force=False),
        ("PATCH", f"{NS}/a?fieldManager=m&force=false", "application/apply-patch+yaml", A),
    ),
    "delete": (
        lambda c: c.delete(PODS, "ns", "a"),
        (
            "DELETE",
            f"{NS}/a",
            "application/json",
            {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"},
        ),
    ),
    "delete just this one": (
        lambda c: c.delete(NODES, None, "n", uid="u", propagation="Foreground", grace_seconds=0),
        (
            "DELETE",
            "/api/v1/nodes/n",
            "application/json",
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "propagationPolicy": "Foreground",
                "preconditions": {"uid": "u"},
                "gracePeriodSeconds": 0,
            },
        ),
    ),
}


@pytest.mark.parametrize(("call", "expected"), CALLS.values(), ids=CALLS)
async def test_each_call_sends_the_expected_request(
    call: Callable[[Client], Awaitable[Any]], expected: tuple[str, str, str, dict[str, Any]]
) -> None:
    async with serving(ScriptedResponse(b'{"answer":1}')) as (server, client):
        await call(client)
    (request,) = server.requests
    sent_request = (
        request.method,
        str(request.rel_url),
        request.headers["Content-Type"],
        orjson.loads(server.bodies[0]),
    )
    assert sent_request == expected
    assert request.headers["User-Agent"] == "test"
    assert request.headers["Accept"] == "application/json"
    assert "Authorization" not in request.headers
    # On loopback, compression costs more than it saves.
    assert request.headers["Accept-Encoding"] == "identity"


async def test_responses_are_returned() -> None:
    async with serving(ScriptedResponse(b'{"a":1}'), page(A, version=5)) as (server, client):
        assert await client.get(PODS, "ns", "a", "status") == b'{"a":1}'
        assert await client.list(PODS, selector="app in (x, y)") == [A]
    assert server.requests[0].path == f"{NS}/a/status"
    assert server.queries[1] == {"labelSelector": "app in (x, y)"}


async def test_a_missing_object_is_none_for_get_and_no_error_for_delete() -> None:
    missing_error = refusal(404, "NotFound")
    async with serving(missing_error, missing_error, missing_error) as (_, client):
        assert await client.get_or_none(PODS, "ns", "a") is None
        await client.delete(PODS, "ns", "a")
        with pytest.raises(ApiError, match="404 NotFound"):
            await client.get(PODS, "ns", "a")


async def test_other_error_responses_are_raised() -> None:
    async with serving(refusal(403, "Forbidden"), refusal(409, "Conflict"), ScriptedResponse(b"no", 503)) as (
        _,
        client,
    ):
        with pytest.raises(ApiError, match="403"):
            await client.get_or_none(PODS, "ns", "a")
        with pytest.raises(ApiError) as caught:
            await client.delete(PODS, "ns", "a", uid="u")
        assert caught.value.conflict
        with pytest.raises(ApiError, match="503: no"):
            await client.create(PODS, A)


async def test_an_exchange_also_returns_error_responses_and_warnings() -> None:
    warned = ScriptedResponse(b"{}", headers={"Warning": '299 - "mind the gap"'})
    async with serving(warned, refusal(403, "Forbidden", Retry_After="3")) as (_, client):
        answer = await client.exchange("GET", NS)
        assert (answer.status, answer.warnings) == (200, ('299 - "mind the gap"',))
        refused = await client.exchange("GET", NS)
        assert refused.status == 403 and refused.error().retry_after == 3


async def test_a_rejected_stream_is_raised_with_its_body() -> None:
    async with serving(refusal(429, "TooManyRequests", Retry_After="9")) as (_, client):
        with pytest.raises(ApiError, match="TooManyRequests") as caught:
            async with client.stream("/x", {}):
                pass
    assert caught.value.retry_after == 9.0


async def test_requests_in_flight_are_limited_and_streams_do_not_count() -> None:
    async with serving(*[held_open()] * 5, in_flight=3) as (server, client), asyncio.TaskGroup() as group:
        async with client.stream("/watch", {}), client.stream("/watch", {}):
            tasks = [group.create_task(client.request("GET", f"/{n}")) for n in range(20)]
            await server.until_asked(5)
            # After a round trip through the server, no more requests than these have arrived.
            async with aiohttp.ClientSession() as other, other.get(f"{server.address}/other"):
                pass
            paths = [request.path for request in server.requests]
            assert sum(path not in ("/watch", "/other") for path in paths) == 3
        for task in tasks:
            task.cancel()


async def test_queueing_time_is_measured_and_excluded_from_the_timeout() -> None:
    async with serving(*[held_open()] * 4, in_flight=1, timeout=0.1) as (server, client):
        results = await asyncio.gather(*(client.request("GET", "/x") for _ in range(4)), return_exceptions=True)
        assert [type(result) for result in results] == [TimeoutError] * 4
        # Each request had its turn, although the last one waited longer than the timeout.
        assert len(server.requests) == 4
        assert client.seconds_queued == pytest.approx(0.1 + 0.2 + 0.3, abs=0.3)


async def test_a_request_without_a_response_times_out() -> None:
    assert inspect.signature(Client).parameters["timeout"].default == 60.0
    async with serving(timeout=0.05) as (_, client):
        with pytest.raises(TimeoutError):
            await client.get(PODS, "ns", "a")


async def test_a_stream_has_no_timeout() -> None:
    later_response = asyncio.Event()
    async with (
        serving(watch(b"one", later_response, b"two"), held_open(), timeout=0.05) as (_, client),
        client.stream("/x", {}) as stream,
    ):
        assert await stream.readany() == b"one"
        # A request sent after the stream was opened times out; the stream stays open.
        with pytest.raises(TimeoutError):
            await client.request("GET", "/y")
        later_response.set()
        assert await stream.readany() == b"two"


async def test_a_token_is_requested_for_each_request() -> None:
    tokens = iter(["Bearer one", "Bearer two", "Bearer three"])
    async with (
        serving(ScriptedResponse(b"{}"), ScriptedResponse(b"{}"), watch()) as (server, _),
        Client(Connection(server.address, None, lambda: next(tokens)), user_agent="test") as client,
    ):
        await client.request("GET", "/x")
        await client.request("GET", "/x")
        async with client.stream("/x", {}):
            pass
    assert [request.headers["Authorization"] for request in server.requests] == [
        "Bearer one",
        "Bearer two",
        "Bearer three",
    ]


async def test_a_client_that_is_not_open_explains_how_to_use_it() -> None:
    client = Client(Connection("http://127.0.0.1:1", None, lambda: None), user_agent="test")
    with pytest.raises(AssertionError, match="async with"):
        await client.request("GET", "/x")


async def test_an_unreachable_server_is_a_client_error() -> None:
    async with serving() as (server, _):
        address = server.address
    async with Client(Connection(address, None, lambda: None), user_agent="test") as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.request("GET", "/x")


async def test_a_forbidden_write_is_not_sent() -> None:
    def refuse() -> None:
        raise PermissionError("not now")

    async with serving(ScriptedResponse(b"{}"), ScriptedResponse(b"{}")) as (server, client):
        client.before_write = refuse
        await client.request("GET", "/x")
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            with pytest.raises(PermissionError):
                await client.request(method, "/x", body={})
        client.before_write = None
        await client.request("POST", "/x", body={})
    assert [request.method for request in server.requests] == ["GET", "POST"]


async def test_responses_are_reported_even_if_they_never_arrive() -> None:
    answers: list[tuple[str, int]] = []
    async with serving(ScriptedResponse(b"{}"), refusal(404), watch(), held_open(), timeout=0.05) as (_, client):
        client.on_answer = lambda method, status: answers.append((method, status))
        await client.request("GET", "/x")
        with pytest.raises(ApiError):
            await client.request("DELETE", "/x")
        async with client.stream("/x", {}):
            pass
        with pytest.raises(TimeoutError):
            await client.request("POST", "/x", body={})
    # The server has already sent the headers of a response that it holds open, so that response is reported with its
    # status.
    assert answers == [("GET", 200), ("DELETE", 404), ("WATCH", 200), ("POST", 200)]
