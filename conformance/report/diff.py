"""Line-by-line differences between an expected and an observed value. Pure."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from conformance.history.differences import reduced
from conformance.report import facts

MAX_WHOLE_LINES = 300
"""Maximum number of lines of a value that is compared in full. Equal parts of longer values are removed first."""
MAX_COMPARED_LINES = 2000
MAX_WIDTH = 300
"""Maximum number of characters of a line that are shown."""


class DiffLine(NamedTuple):
    """A line: its sign (`-` for expected, `+` for observed, a space for both, `…` for omitted lines) and its text."""

    sign: str
    text: str


def diff_lines(expected: object, observed: object, limit: int) -> list[DiffLine]:
    """Return the differences of two values, with three lines of context around each, in at most `limit` lines."""
    texts = facts.text(expected), facts.text(observed)
    if max(text.count("\n") for text in texts) >= MAX_WHOLE_LINES:
        reduced_expected, reduced_observed = reduced(expected, observed)
        texts = facts.text(reduced_expected), facts.text(reduced_observed)
    expected_lines, observed_lines = (text.splitlines()[:MAX_COMPARED_LINES] for text in texts)
    lines = [_line(line) for line in list(difflib.unified_diff(expected_lines, observed_lines, lineterm=""))[2:]]
    if lines and lines[0] == DiffLine("…", ""):
        lines = lines[1:]
    return truncate(lines, limit)


def plain_lines(value: object, limit: int) -> list[DiffLine]:
    """Return at most `limit` lines of one value."""
    return truncate([DiffLine(" ", _shortened(line)) for line in facts.text(value).splitlines()], limit)


def truncate(lines: list[DiffLine], limit: int) -> list[DiffLine]:
    """Return the first `limit` lines, and a last line with the number of omitted lines."""
    hidden_count = len(lines) - limit
    return lines if hidden_count <= 1 else [*lines[:limit], DiffLine("…", f"{hidden_count} more lines in report.yaml")]


def _line(text: str) -> DiffLine:
    return DiffLine("…", "") if text.startswith("@@") else DiffLine(text[0], _shortened(text[1:]))


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 1] + "…"
