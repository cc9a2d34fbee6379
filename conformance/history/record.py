"""Records of watch events: one change of one object, with the bytes that the API server sent."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import orjson

from conformance.grove.fields import decimal

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class SpillFile:
    """An unnamed temporary file for large objects. The file is closed when the last reference to this object goes
    away."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the finalizer closes it
        self._descriptor = file.fileno()
        weakref.finalize(self, file.close)

    def append(self, raw: bytes) -> SpilledObject:
        """Append an object to the file and return its position."""
        offset = os.lseek(self._descriptor, 0, os.SEEK_END)
        os.write(self._descriptor, raw)
        return SpilledObject(self, offset, len(raw))

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes, starting at `offset`."""
        return os.pread(self._descriptor, size, offset)


@dataclass(frozen=True)
class SpilledObject:
    """The position of one object in a file."""

    file: SpillFile
    offset: int
    size: int

    def read(self) -> bytes:
        """Return the bytes of the object."""
        return self.file.read(self.offset, self.size)


@lru_cache(maxsize=8)
def _decode_large(spilled: SpilledObject) -> Mapping[str, Any]:
    """Decode a large object. Only a few decoded objects are cached."""
    decoded: Mapping[str, Any] = orjson.loads(spilled.read())
    return decoded


def release() -> None:
    """Drop the cached decoded objects, and with them the references to their files."""
    _decode_large.cache_clear()


class Record:
    """A watch event.

    `seq` counts arrivals from 1 over all resources. `at` is the time of arrival in seconds since the recorder started
    (monotonic), or an earlier time if the server is known to have made the change by then; `wall` is the same time in
    seconds since the epoch. `version` is the resourceVersion; for a deletion, the version of the deletion. `listed`
    means that the record comes from a list instead of the watch: versions in between may have been missed, and the time
    of arrival is not the time of the change.
    """

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
        raw: bytes | SpilledObject,
        listed: bool = False,
    ) -> None:
        self.seq, self.at, self.wall = seq, at, wall
        self.kind, self.resource = kind, resource
        self.namespace, self.name, self.uid, self.version = namespace, name, uid, version
        self._raw, self.listed = raw, listed

    @property
    def raw(self) -> bytes:
        """Return the object as the API server sent it."""
        return self._raw if isinstance(self._raw, bytes) else self._raw.read()

    @property
    def in_memory(self) -> int:
        """Return the number of bytes of the raw object that are kept in memory."""
        return len(self._raw) if isinstance(self._raw, bytes) else 0

    @property
    def object(self) -> Mapping[str, Any]:
        """Return the decoded object. Do not modify it."""
        return self._small if isinstance(self._raw, bytes) else _decode_large(self._raw)

    @cached_property
    def _small(self) -> Mapping[str, Any]:
        decoded: Mapping[str, Any] = orjson.loads(self.raw)
        return decoded

    @property
    def revision(self) -> int:
        """Return `version` as a number; 0 if it is not a number."""
        return decimal(self.version) or 0

    def __str__(self) -> str:
        return f"#{self.seq} +{self.at:.3f}s {self.kind} {self.resource}/{self.name} (version {self.version})"

    def __repr__(self) -> str:
        return f"<Record {self}>"
