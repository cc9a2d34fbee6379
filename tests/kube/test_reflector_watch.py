"""Tests of watches: bookmarks, silence, back-off, and bytes that arrive in arbitrary pieces."""

from __future__ import annotations

import asyncio
import random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import (
    ScriptedResponse,
    Stream,
    bookmark,
    error,
    event,
    held_open,
    page,
    pod,
    reflecting,
    refusal,
    watch,
)

from kube.reflector import INACTIVITY_SECONDS, Backoff, LineCutter


async def test_a_bookmark_advances_the_version_and_is_not_an_event() -> None:
    script = (page(version=5), watch(event("ADDED", pod("a", 6)), bookmark(90)), watch(bookmark(95)), held_open())
    async with reflecting(*script) as (server, diary, naps):
        await server.until_asked(4)
    assert server.watched_from == ["5", "90", "95"]
    assert diary.entries == [("LIST", ""), ("ADDED", "a@6")]
    assert naps.waits == []


async def test_a_bookmark_without_a_version_is_ignored() -> None:
    async with reflecting(page(version=5), watch(bookmark("")), held_open()) as (server, _, _naps):
        await server.until_asked(3)
    assert server.watched_from == ["5", "5"]


async def test_a_watch_that_ends_is_resumed_without_a_list() -> None:
    script = (page(version=5), watch(event("ADDED", pod("a", 6))), watch(event("MODIFIED", pod("a", 7))), held_open())
    async with reflecting(*script) as (server, diary, naps):
        await server.until_asked(4)
    assert server.kinds == "LWWW"
    assert server.watched_from == ["5", "6", "7"]
    assert diary.entries[1:] == [("ADDED", "a@6"), ("MODIFIED", "a@7")]
    assert naps.waits == []


async def test_a_silent_connection_is_closed_and_resumed() -> None:
    script = (page(version=5), held_open(event("ADDED", pod("a", 6))), held_open(event("MODIFIED", pod("a", 7))))
    async with reflecting(*script, inactivity=0.3) as (server, diary, _):
        await diary.until(3)
        # The client has not only abandoned the first watch but closed its connection.
        await server.until(lambda s: 1 in s.cut)
    assert server.watched_from[:2] == ["5", "6"]
    assert diary.entries == [("LIST", ""), ("ADDED", "a@6"), ("MODIFIED", "a@7")]


async def test_a_connection_that_is_silent_from_the_start_is_also_closed() -> None:
    script = (page(version=5), held_open(), held_open(event("ADDED", pod("a", 6))))
    async with reflecting(*script, inactivity=0.3) as (server, diary, _):
        await diary.until(2)
        await server.until(lambda s: 1 in s.cut)
    assert server.watched_from[:2] == ["5", "5"]


async def test_bytes_keep_a_watch_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines: dict[asyncio.Timeout, list[float]] = {}
    reschedule = asyncio.Timeout.reschedule

    def spy(self: asyncio.Timeout, deadline: float | None) -> None:
        deadlines.setdefault(self, []).append(deadline or 0.0)
        reschedule(self, deadline)

    monkeypatch.setattr(asyncio.Timeout, "reschedule", spy)
    async with reflecting(page(version=5), held_open(event("ADDED", pod("a", 6))), inactivity=7777.0) as (
        _,
        diary,
        _naps,
    ):
        await diary.until(2)
        end = asyncio.get_running_loop().time() + 7000
    (watch_deadlines,) = [times for times in deadlines.values() if max(times) > end]
    # Once at the start of the watch, and again when bytes arrive.
    assert len(watch_deadlines) > 1
    assert watch_deadlines[-1] > watch_deadlines[0]


def test_the_inactivity_limit_exceeds_the_bookmark_interval() -> None:
    assert INACTIVITY_SECONDS > 60


def test_back_off_has_full_jitter_a_cap_and_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = []

    def uniform(low: float, high: float) -> float:
        ranges.append((low, high))
        return high

    monkeypatch.setattr(random, "uniform", uniform)
    backoff = Backoff(first=1.0, cap=10.0)
    assert [backoff.next() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    assert all(low == 0 for low, _ in ranges)
    backoff.reset()
    assert backoff.next() == 1
    for _ in range(2000):
        assert backoff.next() <= 10


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: high)


BAD: dict[str, ScriptedResponse | Stream] = {
    "refused": refusal(500, "InternalError"),
    "refused as an event": watch(error(500, "InternalError")),
    "cut": watch(then="cut"),
    "closed at once": watch(),
    "no JSON": watch(b"<html>\n"),
    "an empty page": ScriptedResponse(b"", 503),
}


@pytest.mark.usefixtures("no_jitter")
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_back_off_grows_until_a_valid_event_arrives(bad: ScriptedResponse | Stream) -> None:
    # A list may come in between; it does not prove that watches work again.
    script = [page(version=5), bad, bad, page(version=5), bad, watch(bookmark(6)), bad, held_open()]
    if bad is BAD["no JSON"] or bad is BAD["refused as an event"]:
        expected_kinds = "LWWLWWWW"
    else:
        del script[3]
        expected_kinds = "LWWWWWW"
    async with reflecting(*script) as (server, _, naps):
        await server.until_asked(len(script))
    assert server.kinds == expected_kinds
    growing_waits, first_wait = naps.waits[:3], naps.waits[3]
    assert growing_waits == sorted(set(growing_waits))
    assert growing_waits[2] == 4 * growing_waits[0]
    assert first_wait == growing_waits[0]


@pytest.mark.usefixtures("no_jitter")
async def test_retry_after_is_honored_on_a_list_and_on_a_watch() -> None:
    script = (
        refusal(429, "TooManyRequests", Retry_After="7"),
        page(version=5),
        refusal(429, "TooManyRequests", Retry_After="3"),
        refusal(503, "ServiceUnavailable", Retry_After="soon"),
        held_open(),
    )
    async with reflecting(*script) as (server, _, naps):
        await server.until_asked(5)
    assert server.kinds == "LLWWW"
    assert naps.waits == [7.0, 3.0, Backoff().next()]


@pytest.mark.parametrize("code", [400, 404])
async def test_a_watch_that_will_never_be_served_lists_again(code: int) -> None:
    async with reflecting(page(version=5), refusal(code), page(version=6), held_open()) as (server, _, naps):
        await server.until_asked(4)
    assert server.kinds == "LWLW"
    assert len(naps.waits) == 1


async def test_a_stream_that_stays_broken_is_resumed_once_and_then_listed() -> None:
    poison = watch(b'{"type":"MODIFIED","object":{"metadata":{"name":"\xff\xfe"}}}\n')
    script = (page(version=5), poison, poison, page(pod("a", 6), version=6), held_open(event("ADDED", pod("b", 7))))
    async with reflecting(*script) as (server, diary, _):
        await diary.until(3)
    assert server.kinds == "LWWLW"
    assert diary.entries == [("LIST", ""), ("LIST", "a"), ("ADDED", "b@7")]


WIDE = pod("größe-日本-🌳", 6)


async def test_a_line_may_be_split_anywhere_even_inside_a_character() -> None:
    line = orjson.dumps({"type": "ADDED", "object": WIDE}) + b"\n"
    assert len(line.decode()) < len(line)
    pieces = [line[i : i + 1] for i in range(len(line))]
    async with reflecting(page(version=5), held_open(*pieces)) as (_, diary, _naps):
        assert await diary.until(2) == [("LIST", ""), ("ADDED", f"{WIDE['metadata']['name']}@6")]
    assert diary.raw == [orjson.dumps(WIDE)]


async def test_a_line_of_five_megabytes_loses_no_byte() -> None:
    big = pod("big", 6, annotations={"status": "ü" * 2_500_000})
    async with reflecting(page(version=5), held_open(event("ADDED", big), event("ADDED", pod("b", 7)))) as (
        _,
        diary,
        _n,
    ):
        await diary.until(3)
    assert len(diary.raw[0]) > 5_000_000
    assert diary.raw[0] == orjson.dumps(big)
    assert diary.entries[2] == ("ADDED", "b@7")


async def test_empty_lines_are_ignored() -> None:
    pieces = (b"\n\n", event("ADDED", pod("a", 6)), b"\r\n  \n", event("ADDED", pod("b", 7)))
    async with reflecting(page(version=5), held_open(*pieces)) as (server, diary, naps):
        assert (await diary.until(3))[1:] == [("ADDED", "a@6"), ("ADDED", "b@7")]
    assert server.kinds == "LW"
    assert naps.waits == []


BROKEN = {
    "half an object": b'{"type":"MODIFIED","object":{"metadata":{"na',
    "a whole object without its line end": event("MODIFIED", pod("a", 7)).rstrip(),
    "invalid UTF-8 in a field that is read": b'{"type":"MODIFIED","object":{"metadata":{"name":"\xff\xfe"}}}\n',
    "invalid UTF-8 outside of strings": b"\xff\xfe\n",
    "invalid UTF-8 in a name of a field": b'{"ty\xffpe":"MODIFIED"}\n',
    "no object": b'{"type":"MODIFIED"}\n',
    "no JSON": b"Internal Server Error\n",
    "a JSON value of another sort": b"[1]\n",
}


@pytest.mark.parametrize("end", ["close", "cut", "hold"])
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_broken_end_of_a_stream_loses_nothing(broken: bytes, end: str) -> None:
    script = (
        page(version=5),
        watch(event("ADDED", pod("a", 6)), broken, then=end),
        held_open(event("MODIFIED", pod("a", 7)), event("ADDED", pod("b", 8))),
    )
    # A stream that stays open without more bytes ends only by the inactivity limit.
    async with reflecting(*script, inactivity=0.3) as (server, diary, _):
        assert (await diary.until(4))[1:] == [("ADDED", "a@6"), ("MODIFIED", "a@7"), ("ADDED", "b@8")]
    assert server.kinds.startswith("LWW")
    assert server.watched_from[1] == "6"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.data())
def test_the_line_cutter_yields_the_lines_regardless_of_the_chunks(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"rest"
    borders = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    cutter, complete = LineCutter(), []
    for start, end in zip([0, *borders], [*borders, len(stream)], strict=True):
        complete += list(cutter.feed(stream[start:end]))
    assert complete == [line for line in lines if line.strip()]
