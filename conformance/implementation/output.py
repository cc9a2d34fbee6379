"""The output of one process in a file that it appends to: read incrementally, and kept small."""

from __future__ import annotations

import contextlib
import os
import re
from itertools import pairwise
from pathlib import Path

MOST = 64 << 20
"""Maximum size in bytes of the file; beyond it, the oldest output is dropped."""
KEPT = 16 << 20
"""Bytes of it that are kept then."""
PIECE = 1 << 20
"""Bytes that are read at a time. Longer lines are split."""
LAST = 1 << 16
TAIL = "log ends with: "
"""Introduces the end of a log in a text."""
LONGEST = 300
"""Maximum length of a line that is quoted as a reason."""
_REASON = re.compile(
    r"^(panic: |fatal error: |[Ee]rror: |F\d{4} |flag provided but not defined|unknown (shorthand )?flag)"
    r"|\"level\": ?\"(fatal|d?panic)\"|\t(FATAL|D?PANIC)\t"
)
"""A line that says why a program ends. What programs write after it may be long: stacks of goroutines, their usage."""

_PLACE = re.compile(r"^/.*?([^/]+\.go:\d+)")
"""The second line of a frame of a Go stack."""


class Output:
    """The output that is appended to `path` from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin = self._read = path.stat().st_size
        self._found: set[str] = set()

    def has(self, pattern: str) -> bool:
        """Return whether a line matches the regular expression, including lines of earlier calls with it."""
        if pattern in self._found:
            return True
        wanted = re.compile(pattern)
        with self._path.open("rb") as file:
            if self._read > file.seek(0, os.SEEK_END):  # the file was truncated
                self._begin = self._read = 0
            file.seek(self._read)
            while piece := file.read(PIECE):
                lines = [line.decode("utf-8", "replace") for line in piece.splitlines()]
                if any(wanted.search(line) for line in lines):
                    self._found.add(pattern)
                    return True
                end = piece.rfind(b"\n") + 1
                self._read += end or (len(piece) if len(piece) == PIECE else 0)  # an incomplete line is read again
                if not end and len(piece) < PIECE:
                    break
                file.seek(self._read)
        return False

    def last_lines(self, most: int) -> list[str]:
        """Return the last lines that are not blank."""
        return self._end()[-most:]

    def reason(self) -> str:
        """Return the last line that says why the program ends, if it is followed by others, and where a panic of a Go
        program happened; empty if there is none."""
        lines = self._end()
        last = next((n for n in range(len(lines) - 2, -1, -1) if _REASON.search(lines[n])), None)
        if last is None:
            return ""
        found = lines[last]
        return (found if len(found) <= LONGEST else found[: LONGEST - 1] + "…") + _origin(lines[last + 1 :])

    def _end(self) -> list[str]:
        with self._path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            begin = self._begin if self._begin <= end else 0
            file.seek(max(begin, end - LAST))
            lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines()]
        return [line for line in lines if line]


def _origin(trace: list[str]) -> str:
    """Return the function and the line in which a Go program panicked, from the stack below the reason: the innermost
    frame that is not the runtime's, below those of whoever recovered the panic and raised it again."""
    begins = [n for n, line in enumerate(trace) if line.startswith(("goroutine ", "panic("))]
    panics = [n for n in begins if trace[n].startswith("panic(")]
    frames = trace[(panics or begins)[-1 if panics else 0] + 1 :] if begins else []
    for function, place in pairwise(frames):
        if (match := _PLACE.search(place)) and not function.startswith(("runtime.", "/")):
            return f" in {function.rpartition('(')[0].rpartition('/')[2]} ({match.group(1)})"
    return ""


def bound(path: Path) -> None:
    """Drop the beginning of a file that has become too large. Processes that append to it continue after what is
    kept."""
    with contextlib.suppress(FileNotFoundError), path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size <= MOST:
            return
        file.seek(size - KEPT)
        kept = file.read().partition(b"\n")[2]
        file.truncate(0)
        file.seek(0)
        file.write(b"(more than %d MiB of output: what came before was dropped)\n" % (MOST >> 20) + kept)
