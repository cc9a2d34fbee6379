"""Tests that the recorded points of a step name the fields that their patches set."""

from __future__ import annotations

import asyncio

import orjson

from conformance.nemesis.proxy.calls import Call
from conformance.nemesis.proxy.interference import ProxyReply, ProxyRequest
from conformance.nemesis.watching import PointWatcher


def fields_of(verb: str, body: object) -> tuple[str, ...]:
    async def send(request: ProxyRequest) -> ProxyReply:
        return ProxyReply(200)

    watcher = PointWatcher("update", "n1")
    call = Call(verb, "podcliques.grove.io", "n1", "s-0-a", "status")
    asyncio.run(watcher.write(ProxyRequest(call, "", "", "", {}, orjson.dumps(body)), send))
    [point] = watcher.points
    return point.fields


def test_a_merge_patch_sets_its_leaf_fields() -> None:
    body = {
        "metadata": {"uid": "u", "resourceVersion": "1"},
        "status": {"conditions": [{"type": "X"}], "updateProgress": {"readyPodsSelectedToUpdate": {"current": "p"}}},
    }
    assert fields_of("patch", body) == (
        "status.conditions",
        "status.updateProgress.readyPodsSelectedToUpdate.current",
    )


def test_other_writes_and_bodies_set_no_fields() -> None:
    assert fields_of("update", {"status": {"replicas": 1}}) == ()
    assert fields_of("patch", [{"op": "remove", "path": "/metadata/finalizers/0"}]) == ()
