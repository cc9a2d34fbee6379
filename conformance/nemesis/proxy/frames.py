"""Splits the body of a watch into its events, without changing a byte of them. The events are lines of JSON, or
protobuf messages that are each preceded by their length in four bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod

PROTOBUF = "application/vnd.kubernetes.protobuf"
_LENGTH = 4


class Cutter(ABC):
    """Takes the body in pieces of any size."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the events that this piece completes, each as it was sent."""
        self._rest += piece
        frames = []
        while end := self._end():
            frames.append(bytes(self._rest[:end]))
            del self._rest[:end]
        return frames

    def rest(self) -> bytes:
        """Return the bytes after the last complete event."""
        return bytes(self._rest)

    @abstractmethod
    def _end(self) -> int:
        """Return the length of the first event; 0 if it is not complete yet."""


class Lines(Cutter):
    """JSON: one event per line."""

    def _end(self) -> int:
        return self._rest.find(b"\n") + 1


class Messages(Cutter):
    """Protobuf: the length of an event (big endian), followed by the event."""

    def _end(self) -> int:
        if len(self._rest) < _LENGTH:
            return 0
        end = _LENGTH + int.from_bytes(self._rest[:_LENGTH])
        return end if len(self._rest) >= end else 0


def cutter(content_type: str) -> Cutter:
    """Return the cutter for a body of this Content-Type."""
    return Messages() if content_type.startswith(PROTOBUF) else Lines()
