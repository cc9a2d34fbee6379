"""Tests that a watch stream is split into its events without changes, no matter how the network splits the stream."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.nemesis.proxy import events, frames

JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf;stream=watch"
POD = b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"p","namespace":"n","resourceVersion":"7"}}}\n'


def protobuf_field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def message(event_type: str, metadata: bytes) -> bytes:
    """Return a Protobuf frame in the format of an API server: WatchEvent, RawExtension, Unknown, and an object with its
    metadata."""
    pod = protobuf_field(1, metadata) + protobuf_field(2, b"\x08\x01spec without a reader"[:2])
    unknown_message = (
        b"k8s\x00" + protobuf_field(1, protobuf_field(1, b"v1") + protobuf_field(2, b"Pod")) + protobuf_field(2, pod)
    )
    event = protobuf_field(1, event_type.encode()) + protobuf_field(2, protobuf_field(1, unknown_message))
    return len(event).to_bytes(4) + event


METADATA = (
    protobuf_field(1, b"p")
    + protobuf_field(3, b"n")
    + protobuf_field(6, b"7")
    + b"\x38\x05"
    + protobuf_field(11, protobuf_field(1, b"label" * 40))
)


@pytest.mark.parametrize(("content_type", "frame"), [(JSON, POD), (PROTOBUF, message("ADDED", METADATA))])
def test_the_object_of_an_event_is_read(content_type: str, frame: bytes) -> None:
    event = events.decode_event(frame, content_type)
    assert (event.type, event.name, event.namespace, event.resource_version) == ("ADDED", "p", "n", "7")
    assert event.raw == frame


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
def test_an_unreadable_event_has_no_name(content_type: str) -> None:
    assert events.decode_event(b"\xff\xff\xff\xff\xff", content_type).name == ""


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.sampled_from([JSON, PROTOBUF]))
def test_events_are_complete_for_any_split_of_the_stream(sizes: list[int], content_type: str) -> None:
    frame = POD if content_type == JSON else message("MODIFIED", METADATA)
    body, cutter = frame * 3, frames.cutter(content_type)
    cut_events = [event for piece in split_body(body, sizes) for event in cutter.feed(piece)]
    assert cut_events == [frame] * 3 and cutter.remainder() == b""


def test_bytes_after_the_last_complete_event_are_kept() -> None:
    cutter = frames.cutter(JSON)
    assert cutter.feed(POD + b'{"type"') == [POD] and cutter.remainder() == b'{"type"'


def split_body(body: bytes, sizes: list[int]) -> Iterator[bytes]:
    offset = 0
    while offset < len(body):
        for size in sizes:
            yield body[offset : offset + size]
            offset += size
