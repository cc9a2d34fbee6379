"""The rows of the specification in `docs/spec/`, by id.

A row is a table line or a paragraph that starts with the anchor of its id: `<a id="obj-401"></a>OBJ-401`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance import data

FOLDER = "docs/spec"
ANCHOR = re.compile(r'<a id="(?P<anchor>[a-z0-9-]+)"></a>')
ID = r"-(?:[A-Z]+-)*[A-Z]*\d+[a-z]?"
"""A pattern for the part of an id after its prefix: `-401`, `-RU-20`, `-S07`, `-05b`."""

MARKS = {
    "C": "contract", "contract": "contract", "D": "defect", "defect": "defect", "O": "observed", "observed": "observed",
    "open": "open",
}  # fmt: skip
"""The first word of a mark → the mark in full (docs/spec/README.md)."""

_MARK_COLUMNS = ("mark", "class", "status", "mark, source")
_SECTION = re.compile(r"s(\d|[a-z](-|$))")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_RULER = re.compile(r"[|:\s-]+")


@dataclass(frozen=True)
class Row:
    """One fact. `cells` are (heading, text) pairs of the columns after the id; a paragraph has one cell without a
    heading."""

    id: str
    file: str
    line: int
    cells: tuple[tuple[str, str], ...]

    @property
    def link(self) -> str:
        """Return the path and anchor of the row, relative to the root of the repository."""
        return f"{FOLDER}/{self.file}#{self.id.lower()}"

    @property
    def text(self) -> str:
        """Return the row as lines, one per column."""
        return "\n".join(f"{name}: {value}" if name else value for name, value in self.cells)

    @property
    def mark(self) -> str:
        """Return the first mark of the row in full; "" if its table has no marks."""
        mark_text = next((value for name, value in self.cells if name.lower() in _MARK_COLUMNS), "")
        word = re.match(r"\W*(\w+)", mark_text)
        return MARKS.get(word[1], "") if word else ""


@functools.cache
def load(folder: Path | None = None) -> Mapping[str, Row]:
    """Read all rows, once per process."""
    spec_folder = folder or data.folder(FOLDER)
    return {row.id: row for path in sorted(spec_folder.glob("*.md")) for row in rows(path)}


def rows(path: Path) -> Iterator[Row]:
    """Yield the rows of one file, in file order."""
    headings: list[str] = []
    lines = path.read_text("utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            headings = []
            yield from _paragraph(path, number, line)
            continue
        cells = _cells(line)
        if number < len(lines) and not headings and _RULER.fullmatch(lines[number]):
            headings = cells
        elif match := ANCHOR.match(cells[0]):
            yield _row(path, number, match["anchor"], cells, headings)


def prefixes(ids: Iterable[str]) -> set[str]:
    """Return the prefixes of ids: `OBJ`, `CHG`, …"""
    return {id.partition("-")[0] for id in ids}


def pattern(ids: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for everything that looks like an id with one of the prefixes of `ids`, whether or not there is
    a row with that id."""
    return re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(prefixes(ids)))}){ID}(?![\w-])")


def _paragraph(path: Path, number: int, line: str) -> Iterator[Row]:
    match = ANCHOR.match(line)
    if match and not _SECTION.match(match["anchor"]):
        yield Row(match["anchor"].upper(), path.name, number, (("", _plain(line)),))


def _row(path: Path, number: int, anchor: str, cells: list[str], headings: list[str]) -> Row:
    name = _plain(cells[0])
    id = name[: len(anchor)]  # as written: an id may end in a lower-case letter
    title = name[len(anchor) :].strip()
    columns = [("", title), *zip([*headings[1:], *[""] * len(cells)], map(_plain, cells[1:]), strict=False)]
    return Row(id, path.name, number, tuple((heading, text) for heading, text in columns if text))


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", ANCHOR.sub("", text)).strip()
