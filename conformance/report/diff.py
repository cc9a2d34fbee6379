"""An expected and an observed value, line by line. Pure."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from conformance.history.differences import reduced
from conformance.report import facts

MOST_WHOLE = 300
"""Lines of a value up to which it is compared as a whole. Of a longer one, equal parts are left out first."""
MOST_COMPARED = 2000
WIDTH = 300
"""Characters of a line that are shown."""


class DiffLine(NamedTuple):
    """A line: its sign (`-` expected, `+` seen, a space for both, `…` for what is left out) and its text."""

    sign: str
    text: str


def of(expected: object, observed: object, most: int) -> list[DiffLine]:
    """Return where two values differ, with three lines around each place, and `most` lines at most."""
    texts = facts.text(expected), facts.text(observed)
    if max(text.count("\n") for text in texts) >= MOST_WHOLE:
        left, right = reduced(expected, observed)
        texts = facts.text(left), facts.text(right)
    one, other = (text.splitlines()[:MOST_COMPARED] for text in texts)
    lines = [_line(line) for line in list(difflib.unified_diff(one, other, lineterm=""))[2:]]
    if lines and lines[0] == DiffLine("…", ""):
        lines = lines[1:]
    return cut(lines, most)


def plain(value: object, most: int) -> list[DiffLine]:
    """Return the lines of one value, `most` at most."""
    return cut([DiffLine(" ", _short(line)) for line in facts.text(value).splitlines()], most)


def cut(lines: list[DiffLine], most: int) -> list[DiffLine]:
    """Return the first lines, and how many more there are."""
    more = len(lines) - most
    return lines if more <= 1 else [*lines[:most], DiffLine("…", f"{more} more lines in report.yaml")]


def _line(text: str) -> DiffLine:
    return DiffLine("…", "") if text.startswith("@@") else DiffLine(text[0], _short(text[1:]))


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
