"""Splits the body of a watch into its events, without changing a byte of them. The events are lines of JSON, or
protobuf messages that are each preceded by their length in four bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod

PROTOBUF = "application/vnd.kubernetes.protobuf"
_LENGTH = 4


class FrameSplitter(ABC):
    """Takes the body in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the events that this piece completes, each as it was sent."""
        self._buffer += piece
        frames = []
        while end := self._frame_length():
            frames.append(bytes(self._buffer[:end]))
            del self._buffer[:end]
        return frames

    def remainder(self) -> bytes:
        """Return the bytes after the last complete event."""
        return bytes(self._buffer)

    @abstractmethod
    def _frame_length(self) -> int:
        """Return the length of the first event; 0 if it is not complete yet."""


class LineSplitter(FrameSplitter):
    """JSON: one event per line."""

    def _frame_length(self) -> int:
        return self._buffer.find(b"\n") + 1


class ProtobufSplitter(FrameSplitter):
    """Protobuf: the length of an event (big endian), followed by the event."""

    def _frame_length(self) -> int:
        if len(self._buffer) < _LENGTH:
            return 0
        end = _LENGTH + int.from_bytes(self._buffer[:_LENGTH])
        return end if len(self._buffer) >= end else 0


def cutter(content_type: str) -> FrameSplitter:
    """Return the cutter for a body of this Content-Type."""
    return ProtobufSplitter() if content_type.startswith(PROTOBUF) else LineSplitter()
