"""The output of one process in a file to which the process appends. The file is read incrementally and kept small."""

from __future__ import annotations

import os
import re
import threading
import time
from itertools import pairwise
from pathlib import Path

import regex

from conformance import credentials, regular

MAX_BYTES = 64 << 20
"""Maximum size of the file in bytes. If it grows beyond that, the oldest output is dropped."""
KEPT_BYTES = 16 << 20
"""The number of bytes that are kept when output is dropped."""
PIECE_BYTES = 1 << 20
"""The number of bytes that are read at a time. Longer lines are split."""
TAIL_BYTES = 1 << 16
"""The number of bytes at the end of the file that are searched for reasons and last lines."""
SEARCH_SECONDS = 1.0
"""Seconds after which a search for a line pauses."""
MATCH_SECONDS = 2.0
"""Seconds of CPU time that a regular expression may take on one line. A well-written expression takes milliseconds."""
TAIL_PREFIX = "log ends with: "
"""The words before a quotation from the end of a log."""
MAX_REASON_LENGTH = 300
"""Maximum length of a line that is quoted as a reason."""
_REASON = re.compile(
    r"^(panic: |fatal error: |[Ee]rror: |F\d{4} |flag provided but not defined|unknown (shorthand )?flag)"
    r"|\"level\": ?\"(fatal|d?panic)\"|\t(FATAL|D?PANIC)\t"
)
"""A line that gives the reason why a program ends. The text after it may be long: stacks of goroutines, or the
program's usage."""

_FRAME_LOCATION = re.compile(r"^/.*?([^/]+\.go:\d+)")
"""The second line of a frame of a Go stack."""


class SlowPattern(Exception):
    """A regular expression takes too long on one line. `str()` completes a sentence whose subject is the process."""


class Output:
    """The output that is appended to `path` from now on.

    The file that exists now stays in use even if another file replaces it at this path. Raises OSError if it is not a
    regular file.
    """

    def __init__(self, path: Path) -> None:
        self._file = regular.OpenFile(path, "r+b")
        self._lock = threading.Lock()
        self._start_offset = self._read_offset = self._file.size
        self._matched: set[str] = set()

    def has_line(self, pattern: str) -> bool:
        """Return whether a line matches the regular expression; lines that matched in earlier calls count. A call takes
        at most about `SEARCH_SECONDS`, and the next call continues with the remaining output. Raises SlowPattern if the
        expression takes too long on a line."""
        if pattern in self._matched:
            return True
        compiled, deadline = regex.compile(pattern), time.monotonic() + SEARCH_SECONDS
        with self._lock:
            end = self._file.size
            if self._read_offset > end:  # the file was truncated
                self._start_offset = self._read_offset = 0
            while self._read_offset < end and time.monotonic() < deadline:
                piece = self._file.at(self._read_offset, min(PIECE_BYTES, end - self._read_offset))
                if any(_line_matches(compiled, line) for line in piece.decode("utf-8", "replace").splitlines()):
                    self._matched.add(pattern)
                    return True
                # An incomplete line is read again.
                complete_bytes = piece.rfind(b"\n") + 1 or (len(piece) if len(piece) == PIECE_BYTES else 0)
                self._read_offset += complete_bytes
                if not complete_bytes:
                    break
        return False

    def limit_size(self) -> None:
        """Drop the start of the file if the file has become too large. Processes that append to the file continue after
        the part that is kept. Raises OSError if the file cannot be written."""
        with self._lock:
            size = self._file.size
            if size <= MAX_BYTES:
                return
            content = self._file.at(size - KEPT_BYTES, KEPT_BYTES)
            note = b"(more than %d MiB of output: what came before was dropped)\n" % (MAX_BYTES >> 20)
            content = note + content[content.find(b"\n") + 1 :]  # keep all of the content if it is one line
            os.ftruncate(self._file.descriptor, 0)
            os.pwrite(self._file.descriptor, content, 0)
            self._start_offset, self._read_offset = (
                max(0, offset - size + len(content)) for offset in (self._start_offset, self._read_offset)
            )

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines that are not blank."""
        return self._tail_lines()[-count:]

    def reason(self) -> str:
        """Return the last line that gives the reason why the program ends, if other lines follow it, and the location
        at which a Go program panicked. Return an empty string if there is no such line."""
        lines = self._tail_lines()
        reason_line = next((n for n in range(len(lines) - 2, -1, -1) if _REASON.search(lines[n])), None)
        if reason_line is None:
            return ""
        line = lines[reason_line]
        return (line if len(line) <= MAX_REASON_LENGTH else line[: MAX_REASON_LENGTH - 1] + "…") + _panic_location(
            lines[reason_line + 1 :]
        )

    def _tail_lines(self) -> list[str]:
        end = self._file.size
        start = self._start_offset if self._start_offset <= end else 0
        content = credentials.redact_log(
            self._file.at(max(start, end - TAIL_BYTES), min(TAIL_BYTES, end - start)), self._file.name
        )
        lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines()]
        return [line for line in lines if line]


def _line_matches(pattern: regex.Pattern[str], line: str) -> bool:
    try:
        return pattern.search(line, timeout=MATCH_SECONDS) is not None
    except TimeoutError as error:
        problem = f"the regular expression {pattern.pattern!r} takes more than {MATCH_SECONDS:g} s on a line"
        raise SlowPattern(f"{problem}: write ready.log without repetitions of repetitions") from error


def _panic_location(trace: list[str]) -> str:
    """Return the function and the line in which a Go program panicked, from the stack below the reason: the innermost
    frame that does not belong to the runtime, below the frames of code that recovered the panic and panicked again."""
    stack_starts = [n for n, line in enumerate(trace) if line.startswith(("goroutine ", "panic("))]
    panics = [n for n in stack_starts if trace[n].startswith("panic(")]
    frames = trace[(panics or stack_starts)[-1 if panics else 0] + 1 :] if stack_starts else []
    for function, place in pairwise(frames):
        if (match := _FRAME_LOCATION.search(place)) and not function.startswith(("runtime.", "/")):
            return f" in {function.rpartition('(')[0].rpartition('/')[2]} ({match.group(1)})"
    return ""
