"""Save and load a history as a file of JSON lines: a header, then one record per line with the object as JSON.

The file is compressed if its name ends with `.gz`; `load` reads both forms. Each line repeats most of the previous
line, so compression reduces the size to a thirteenth.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

import msgspec

from conformance import bounded, credentials, regular
from conformance.errors import UsageError
from conformance.history.origins import Origins
from conformance.history.record import Record
from conformance.suggestions import explain_unreadable
from kube import nesting

FORMAT = 1
_GZIP = b"\x1f\x8b"


class _Header(msgspec.Struct, omit_defaults=True):
    history: int
    namespace: str
    now: float
    origins: Origins = msgspec.field(default_factory=Origins)


class _End(msgspec.Struct):
    """The last line of a file that was written while the records arrived."""

    ended: float


_END_PREFIX = b'{"ended"'


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


_encoder = msgspec.json.Encoder()
_end_decoder = msgspec.json.Decoder(_End)
MAX_BYTES = 2 << 30
"""Maximum size in bytes of an uncompressed history that is read."""


def save(path: Path, namespace: str, now: float, records: Iterable[Record], origins: Origins | None = None) -> None:
    """Write a history. `now` is the time of saving in seconds since the recorder started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        file: BinaryIO = stack.enter_context(io.BufferedWriter(cast(Any, regular.open_file(path, "wb"))))
        if path.suffix == ".gz":
            file = cast(BinaryIO, stack.enter_context(gzip.GzipFile("", "wb", compresslevel=3, fileobj=file, mtime=0)))
        file.write(_encoder.encode(_Header(FORMAT, namespace, now, origins or Origins())) + b"\n")
        file.writelines(_line(record) for record in records)


def _line(r: Record) -> bytes:
    line = _Line(
        r.seq, r.at, r.wall, r.kind, r.resource, r.namespace, r.name, r.uid, r.version, r.listed, msgspec.Raw(r.raw)
    )
    return credentials.redact_bytes(_encoder.encode(line)) + b"\n"


class Recording:
    """A file for the records of all namespaces that is written while they arrive: if the process is killed, no record
    that was written is lost. Only its owner can read it. Raises OSError if the file cannot be written."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        self._file: BinaryIO = path.open("wb", buffering=0)
        self._file.write(_encoder.encode(_Header(FORMAT, "", 0)) + b"\n")
        self.now = 0.0
        """The time at which the recording ended, in seconds since the recorder started; written at the end of the
        context."""

    def write(self, records: Iterable[Record]) -> None:
        """Append records."""
        self._file.write(b"".join(map(_line, records)))

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.write(_encoder.encode(_End(self.now)) + b"\n")
        self.close()

    def close(self) -> None:
        """Close the file without writing the last line."""
        self._file.close()


def load(path: Path) -> tuple[str, float, list[Record]]:
    """Return the namespace, time of saving and records of a saved history. The namespace is empty if the file has
    records of all namespaces. A recording's last line is skipped if it is truncated. Raises UsageError for the first
    invalid line."""
    with _opened(path) as file:
        header = _header(file, path)
        decoder, records, now = msgspec.json.Decoder(_Line), list[Record](), header.now
        for line_number, text in enumerate(_lines(file, path), 2):
            if not header.now and not text.endswith(b"\n"):
                break  # a recording whose recorder was killed in the middle of this line
            place, cut = f"{path}:{line_number}", "was the file cut?"
            if text.startswith(_END_PREFIX):
                now = bounded.decode_line(_end_decoder.decode, text, place, problem="no record", hint=cut).ended
                continue
            line = bounded.decode_line(
                decoder.decode, nesting.limit_depth(text, str(path)), place, problem="no record", hint=cut
            )
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
    return header.namespace, max([now, *(record.at for record in records[-1:])]), records


def origins(path: Path) -> Origins:
    """Return the `origins` of a saved history. Raises UsageError if the file is not a saved history."""
    with _opened(path) as file:
        return _header(file, path).origins


def _header(file: BinaryIO, path: Path) -> _Header:
    problem, hint = "no saved history", "give a history.jsonl.gz"
    first = file.readline(bounded.MAX_MANIFEST_BYTES)
    return bounded.decode_line(msgspec.json.Decoder(_Header).decode, first, f"{path}:1", problem=problem, hint=hint)


def _lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield lines. Raises UsageError once they exceed `MAX_BYTES` bytes, because a small compressed file may expand to
    a huge one."""
    remaining = MAX_BYTES
    while text := file.readline(bounded.MAX_MANIFEST_BYTES):
        if (remaining := remaining - len(text)) < 0:
            raise UsageError(f"is longer than {MAX_BYTES >> 30} GiB", where=str(path), hint="give a shorter history")
        yield text


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a history. Raises UsageError if it cannot be read, or if it is compressed and damaged."""
    try:
        with path.open("rb") as file:
            if not file.peek(2).startswith(_GZIP):
                yield file
                return
            with gzip.GzipFile(fileobj=file) as content:
                yield cast(BinaryIO, content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"no saved history: {error}", where=str(path), hint="was the file cut?") from error
    except OSError as error:
        problem, near_hint = explain_unreadable(path, error)
        raise UsageError(problem, where=str(path), hint=near_hint) from error
