"""Tests that a watch stream is cut into its events, however the network splits the stream, and that no byte changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.nemesis.proxy import events, frames

JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf;stream=watch"
POD = b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"p","namespace":"n","resourceVersion":"7"}}}\n'


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def message(event_type: str, metadata: bytes) -> bytes:
    """Return a Protobuf frame as an API server sends it: WatchEvent, RawExtension, Unknown, and an object with its
    metadata."""
    pod = field(1, metadata) + field(2, b"\x08\x01spec without a reader"[:2])
    unknown = b"k8s\x00" + field(1, field(1, b"v1") + field(2, b"Pod")) + field(2, pod)
    event = field(1, event_type.encode()) + field(2, field(1, unknown))
    return len(event).to_bytes(4) + event


METADATA = field(1, b"p") + field(3, b"n") + field(6, b"7") + b"\x38\x05" + field(11, field(1, b"label" * 40))


@pytest.mark.parametrize(("content_type", "frame"), [(JSON, POD), (PROTOBUF, message("ADDED", METADATA))])
def test_an_event_says_what_it_is_about(content_type: str, frame: bytes) -> None:
    event = events.read(frame, content_type)
    assert (event.type, event.name, event.namespace, event.resource_version) == ("ADDED", "p", "n", "7")
    assert event.raw == frame


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
def test_what_cannot_be_read_is_an_event_without_a_name(content_type: str) -> None:
    assert events.read(b"\xff\xff\xff\xff\xff", content_type).name == ""


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.sampled_from([JSON, PROTOBUF]))
def test_events_are_whole_whatever_the_pieces(sizes: list[int], content_type: str) -> None:
    frame = POD if content_type == JSON else message("MODIFIED", METADATA)
    body, cutter = frame * 3, frames.cutter(content_type)
    cut = [event for piece in pieces(body, sizes) for event in cutter.feed(piece)]
    assert cut == [frame] * 3 and cutter.rest() == b""


def test_what_follows_the_last_whole_event_is_kept() -> None:
    cutter = frames.cutter(JSON)
    assert cutter.feed(POD + b'{"type"') == [POD] and cutter.rest() == b'{"type"'


def pieces(body: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        for size in sizes:
            yield body[at : at + size]
            at += size
