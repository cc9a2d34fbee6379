"""The type of a watch event and the metadata of its object, decoded from JSON or protobuf.

From protobuf, only the required fields are decoded: fields of WatchEvent, RawExtension, Unknown and ObjectMeta, by
their numbers, which Kubernetes never changes (generated.proto of apimachinery). Every object has its ObjectMeta in
field 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from conformance.nemesis.proxy.frames import PROTOBUF
from kube import nesting

_MAGIC = b"k8s\x00"
_LENGTH = 4


@dataclass(frozen=True)
class WatchEvent:
    """A watch event. `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; `raw` is the frame as it was sent."""

    type: str
    name: str
    namespace: str
    resource_version: str
    raw: bytes


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815 - the name in JSON


class _Object(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Watched(msgspec.Struct):
    type: str
    object: _Object


_decode = msgspec.json.Decoder(_Watched).decode


def decode_event(frame: bytes, content_type: str) -> WatchEvent:
    """Return the event in one frame of a watch. A frame that cannot be decoded becomes an event without a type or
    name."""
    try:
        if content_type.startswith(PROTOBUF):
            return _from_protobuf(frame)
        decoded = _decode(nesting.limit_depth(frame, "a watch"))
    except (msgspec.MsgspecError, ValueError, IndexError, UnicodeDecodeError):
        return WatchEvent("", "", "", "", frame)
    metadata = decoded.object.metadata
    return WatchEvent(decoded.type, metadata.name, metadata.namespace, metadata.resourceVersion, frame)


def _from_protobuf(frame: bytes) -> WatchEvent:
    message = dict(_fields(frame[_LENGTH:]))
    extension = dict(_fields(message[2])) if 2 in message else {}
    content = extension.get(1, b"")
    if content.startswith(_MAGIC):
        content = dict(_fields(content[len(_MAGIC) :])).get(2, b"")
    metadata = dict(_fields(dict(_fields(content)).get(1, b"")))
    name, namespace, version = (metadata.get(number, b"").decode() for number in (1, 3, 6))
    return WatchEvent(message[1].decode(), name, namespace, version, frame)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and content of each length-delimited field; skip fields that are numbers. Raises ValueError or
    IndexError if the message is invalid."""
    offset = 0
    while offset < len(message):
        key, offset = _varint(message, offset)
        match key & 7:
            case 0:
                _, offset = _varint(message, offset)
            case 1:
                offset += 8
            case 5:
                offset += 4
            case 2:
                size, offset = _varint(message, offset)
                if offset + size > len(message):
                    raise ValueError("a field that is longer than its message")
                yield key >> 3, message[offset : offset + size]
                offset += size
            case kind:
                raise ValueError(f"wire type {kind}")


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value, offset
