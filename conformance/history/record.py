"""One thing that happened to one object, with every byte that was received (anchors C-03)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import orjson

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Record:
    """A watch event. `seq` counts arrivals from 1 over all resources; `at` is the arrival in seconds since the
    recorder started (monotonic), `wall` the same moment in seconds since the epoch. `version` is the resource version,
    for a deletion that of the deletion. `listed` says that the record comes from a list and not from the watch:
    versions in between may have been missed, and the arrival says nothing about when the change happened."""

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
        raw: bytes,
        listed: bool = False,
    ) -> None:
        self.seq, self.at, self.wall = seq, at, wall
        self.kind, self.resource = kind, resource
        self.namespace, self.name, self.uid, self.version = namespace, name, uid, version
        self.raw, self.listed = raw, listed

    @cached_property
    def object(self) -> Mapping[str, Any]:
        """The object as decoded from its bytes, decoded once. Not to be changed."""
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
