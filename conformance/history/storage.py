"""A history as a file of JSON lines: a header, then one record per line, with the bytes of its object."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from conformance.errors import UsageError
from conformance.history.record import Record

FORMAT = 1


class _Header(msgspec.Struct):
    history: int
    namespace: str
    now: float


class _Line(msgspec.Struct):
    seq: int
    at: float
    wall: float
    kind: str
    resource: str
    namespace: str
    name: str
    uid: str
    version: str
    listed: bool
    object: msgspec.Raw


def save(path: Path, namespace: str, now: float, records: Iterable[Record]) -> None:
    """Write a history. `now` is the time of saving in seconds since the recorder started."""
    encoder = msgspec.json.Encoder()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(encoder.encode(_Header(FORMAT, namespace, now)) + b"\n")
        for r in records:
            line = _Line(
                r.seq, r.at, r.wall, r.kind, r.resource, r.namespace, r.name, r.uid, r.version, r.listed,
                msgspec.Raw(r.raw),
            )  # fmt: skip
            file.write(encoder.encode(line) + b"\n")


def load(path: Path) -> tuple[str, float, list[Record]]:
    """Return namespace, time of saving and records of a saved history. Raises UsageError with the first invalid
    line."""
    with path.open("rb") as file:
        try:
            header = msgspec.json.decode(next(file, b""), type=_Header)
        except msgspec.DecodeError as error:
            raise UsageError(f"no saved history: {error}", where=f"{path}:1", hint="give a history.jsonl") from error
        decoder, records = msgspec.json.Decoder(_Line), []
        for number, text in enumerate(file, 2):
            try:
                line = decoder.decode(text)
            except msgspec.DecodeError as error:
                raise UsageError(f"no record: {error}", where=f"{path}:{number}", hint="was the file cut?") from error
            records.append(
                Record(
                    seq=line.seq,
                    at=line.at,
                    wall=line.wall,
                    kind=line.kind,
                    resource=line.resource,
                    namespace=line.namespace,
                    name=line.name,
                    uid=line.uid,
                    version=line.version,
                    raw=bytes(line.object),
                    listed=line.listed,
                )
            )
    return header.namespace, header.now, records
