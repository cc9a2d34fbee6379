"""A file to which one program appends, and which no other program may change.

The file is read as it grows, and a digest of each piece is kept: a piece whose content differs later was changed and is
not trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from conformance import regular
from conformance.errors import HarnessError

PIECE_BYTES = 1 << 16
"""The size of a piece in bytes."""
MAX_LINE_BYTES = 32 << 20
"""Maximum number of bytes in a line. An object has at most 1.5 MiB, and a line contains at most two copies of it."""


class GrowingFile:
    """The file at `path`, which need not exist yet. All methods raise HarnessError if the file was changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: regular.OpenFile | None = None
        self._end = 0
        self._digests: list[bytes] = []
        """The digests of the complete pieces."""
        self._last = hashlib.blake2b()
        """The digest of the last, incomplete piece."""

    def end(self) -> int:
        """Read what was appended since the last call, and return the current end."""
        if self._file is None:
            try:
                self._file = regular.OpenFile(self._path)
            except FileNotFoundError:
                return 0
            except OSError as error:
                raise self.wrong(f"cannot be read: {error.strerror}") from error
        size = self._file.size
        if size < self._end or not self._file.in_place:
            raise self.wrong("was cut" if size < self._end else "was replaced")
        while self._end < size:
            piece = self._file.at(self._end, min(size - self._end, PIECE_BYTES - self._end % PIECE_BYTES))
            if not piece:
                raise self.wrong("was cut")
            self._last.update(piece)
            self._end += len(piece)
            if self._end % PIECE_BYTES == 0:
                self._digests.append(self._last.digest())
                self._last = hashlib.blake2b()
        return self._end

    def lines(self, begin: int) -> Iterator[tuple[bytes, int]]:
        """Yield the complete lines that start at or after `begin`, each with the offset of its end. `begin` may be
        inside a line, because a server does not write lines atomically."""
        self.end()
        offset = max(0, begin - 1)  # the end of the previous line, unless `begin` is inside a line
        incomplete: list[bytes] = []  # joined once, because a client can make lines as long as many pieces
        is_skipping, length = begin > 0, 0
        for piece in self._pieces(offset):
            for part in piece.splitlines(keepends=True):
                incomplete.append(part)
                length += len(part)
                if part.endswith(b"\n"):
                    line, offset = b"".join(incomplete), offset + length
                    if not is_skipping and not line.isspace():
                        yield line, offset
                    incomplete, is_skipping, length = [], False, 0
            if length > MAX_LINE_BYTES:
                raise self.wrong(f"has a line of more than {MAX_LINE_BYTES >> 20} MiB")

    def wrong(self, problem: str) -> HarnessError:
        """Return the error for a file that was changed."""
        hint = "another program of this user has done that: run the suite apart from it"
        return HarnessError(problem, where=str(self._path), hint=hint)

    def _pieces(self, place: int) -> Iterator[bytes]:
        """Yield the content from `place` on."""
        end = self._end
        for number in range(place // PIECE_BYTES, -(-end // PIECE_BYTES)):
            assert self._file is not None
            start = number * PIECE_BYTES
            piece = self._file.at(start, min(PIECE_BYTES, self._end - start))
            is_last = number == len(self._digests)
            if hashlib.blake2b(piece).digest() != (self._last.digest() if is_last else self._digests[number]):
                raise self.wrong("was changed")
            yield piece[max(0, place - start) :]
