"""One thing that happened to one object, with every byte that was received."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import IO, Any

import orjson

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


@dataclass(frozen=True)
class Spilled:
    """Bytes in a file that has no name."""

    file: IO[bytes]
    begin: int
    size: int

    def read(self) -> bytes:
        return os.pread(self.file.fileno(), self.size, self.begin)


@lru_cache(maxsize=8)
def _large(spilled: Spilled) -> Mapping[str, Any]:
    """A large object, of which few are kept as decoded."""
    decoded: Mapping[str, Any] = orjson.loads(spilled.read())
    return decoded


def release() -> None:
    """Let go of the large objects that are kept as decoded, and with them of their files."""
    _large.cache_clear()


class Record:
    """A watch event. `seq` counts arrivals from 1 over all resources; `at` is the arrival in seconds since the
    recorder started (monotonic; earlier where the server was known to be past the change by then), `wall` the same
    moment in seconds since the epoch. `version` is the resource version, for a deletion that of the deletion. `listed`
    says that the record comes from a list and not from the watch: versions in between may have been missed, and the
    arrival says nothing about when the change happened."""

    def __init__(
        self,
        *,
        seq: int,
        at: float,
        wall: float,
        kind: str,
        resource: str,
        namespace: str,
        name: str,
        uid: str,
        version: str,
        raw: bytes | Spilled,
        listed: bool = False,
    ) -> None:
        self.seq, self.at, self.wall = seq, at, wall
        self.kind, self.resource = kind, resource
        self.namespace, self.name, self.uid, self.version = namespace, name, uid, version
        self._raw, self.listed = raw, listed

    @property
    def raw(self) -> bytes:
        """The object, byte for byte."""
        return self._raw if isinstance(self._raw, bytes) else self._raw.read()

    @property
    def object(self) -> Mapping[str, Any]:
        """The object as decoded from its bytes. Not to be changed."""
        return self._small if isinstance(self._raw, bytes) else _large(self._raw)

    @cached_property
    def _small(self) -> Mapping[str, Any]:
        decoded: Mapping[str, Any] = orjson.loads(self.raw)
        return decoded

    @property
    def revision(self) -> int:
        """`version` as a number, 0 where it is none."""
        return int(self.version) if self.version.isdigit() else 0

    def __str__(self) -> str:
        return f"#{self.seq} +{self.at:.3f}s {self.kind} {self.resource}/{self.name} (version {self.version})"

    def __repr__(self) -> str:
        return f"<Record {self}>"
