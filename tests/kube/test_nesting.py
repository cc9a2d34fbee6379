"""Tests that an object nested too deeply for any decoder is recorded without its deepest levels, and does not stop the
recording."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import ScriptedResponse, held_open, page, pod, reflecting

from conformance.cluster import audit_bodies
from conformance.cluster.audit import AuditLog
from conformance.grove.kinds import SECRETS
from conformance.history import redaction
from conformance.history.log import Log
from conformance.history.recorder import Watched, _Feed
from conformance.nemesis.corruption import corrupt
from conformance.nemesis.proxy import events
from kube import nesting
from kube.objects import ObjectMeta, envelope

DEEP = [nesting.MAX_DEPTH, 300, 1_200, 9_000]
"""Encoders fail at 254 levels and decoders at about 1,000; the API server accepts 10,000."""


class Pod(msgspec.Struct):
    metadata: ObjectMeta


def deep(name: str, levels: int, version: int = 6) -> bytes:
    """Return a pod whose managed field is nested `levels` deep."""
    marked = pod(name, version, managedFields=[{"fieldsV1": "HERE"}], labels={"x": '}"{['})
    return orjson.dumps(marked).replace(b'"HERE"', b'{"f:a":' * levels + b"{}" + b"}" * levels)


def event_of(raw: bytes, kind: str = "ADDED") -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), raw)


@pytest.mark.parametrize("levels", DEEP)
async def test_a_deep_object_is_watched_like_any_other(levels: int) -> None:
    pieces = (event_of(deep("a", levels, 6)), event_of(deep("a", levels, 7), "MODIFIED"), event_of(deep("b", 1, 8)))
    async with reflecting(page(version=5), held_open(*pieces)) as (server, diary, naps):
        assert (await diary.until(4))[1:] == [("ADDED", "a@6"), ("MODIFIED", "a@7"), ("ADDED", "b@8")]
    assert server.kinds == "LW" and naps.waits == []
    assert all(orjson.dumps(orjson.loads(raw)) for raw in diary.raw), "an object that is told can be read and written"


@pytest.mark.parametrize("levels", DEEP)
async def test_a_deep_object_is_listed_like_any_other(levels: int) -> None:
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%s,%s]}' % (deep("a", levels), deep("b", 1))
    async with reflecting(ScriptedResponse(body), held_open()) as (server, diary, naps):
        assert await diary.until(1) == [("LIST", "a b")]
        await server.until_asked(2)
    assert naps.waits == []


@pytest.mark.parametrize("levels", [300, 1_200])
def test_a_deep_secret_is_recorded_without_its_data(levels: int) -> None:
    log = Log()
    raw = nesting.limit_depth(deep("a", levels), "here")
    _Feed(log, Watched(SECRETS)).on_event("ADDED", envelope(raw))
    [record] = log.records_after("ns", 0)
    assert record.object["metadata"]["name"] == "a" and redaction.record(record.raw) == record.raw


def test_the_log_has_one_line_for_each_source(caplog: pytest.LogCaptureFixture) -> None:
    nesting._warn_once.cache_clear()
    for _ in range(3):
        nesting.limit_depth(deep("a", 1_200), "/api/v1/pods")
    [line] = caplog.messages
    assert line == "/api/v1/pods: an object is more than 64 levels deep; what is deeper is left out"


def test_proxies_read_deep_writes() -> None:
    assert events.decode_event(event_of(deep("a", 1_200)), "application/json").name == "a"
    assert b'"labels":{}' in corrupt(deep("a", 300))


def test_audit_logs_with_bodies_are_read(tmp_path: Path) -> None:
    line = b'{"stage":"ResponseComplete","verb":"create","responseObject":%s,"requestObject":%s,%s}\n' % (
        deep("a", 1_200),
        deep("a", 1_200),
        b'"objectRef":{"resource":"pods","namespace":"ns"},"responseStatus":{"code":201},"userAgent":"x",'
        b'"user":{"username":"u"},"stageTimestamp":"2026-01-01T00:00:00.000000Z"',
    )
    (log := tmp_path / "audit.log").write_bytes(line)
    assert AuditLog(log).requests().total() == 1
    assert [write.target[3] for write in audit_bodies.writes(log, "ns")] == ["a"]


def test_shallow_text_is_returned_unchanged() -> None:
    wide = orjson.dumps([{"a": "{[" * 500, "b": '\\"', "c": [[]]}] * 100)
    assert nesting.limit_depth(wide, "here") is wide
    assert nesting.limit_depth(deep("a", nesting.MAX_DEPTH - 4), "here").count(b"f:a") == nesting.MAX_DEPTH - 4


@pytest.mark.parametrize(
    "text", [b"[" * 1_000_000, b"{}]" * 400_000, b'"' + b"{" * 1_000_000, b'\\"[' * 400_000], ids=len
)
def test_invalid_json_is_returned_quickly(text: bytes) -> None:
    started_at = time.process_time()
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(nesting.limit_depth(text, "here"))
    assert time.process_time() - started_at < 10


JSON = st.recursive(
    st.none() | st.text(alphabet='{}[]"\\,:aö') | st.integers(-9, 9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='{}[]"\\a'), inner, max_size=4),
)


@given(JSON, st.integers(1, 400))
def test_shallow_values_are_kept_alongside_deep_values(value: Any, levels: int) -> None:
    raw = orjson.dumps([value, "HERE", value]).replace(b'"HERE"', b"[" * levels + b"]" * levels, 1)
    parsed = orjson.loads(nesting.limit_depth(raw, "here"))
    if b'"HERE"' not in raw:
        assert parsed[0] == parsed[2] == value
        depth, inner = 0, parsed[1]
        while isinstance(inner, list):
            depth, inner = depth + 1, inner[0] if inner else None
        assert depth == min(levels, nesting.MAX_DEPTH - 1)
