"""The lines of Grove's contract: releases that agree on how PodGangs are known (fixtures/contract/lines.yaml)."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path

from conformance import data, documents

NAMES, MAPS = "names", "maps"
_RELEASE = re.compile(r"v(\d+)\.(\d+)\.(\d+)(?:-alpha\.(\d+)(?:-rc(\d+))?)?")

Order = tuple[float, ...]


@dataclass(frozen=True)
class Line:
    """A line. `first` is empty for the line that Grove began with; `newest` is what an implementation is judged by that
    does not name a release."""

    name: str
    newest: str
    about: str
    first: str = ""

    @property
    def releases(self) -> str:
        """Return the releases that follow it, for people."""
        return f"from {self.first}" if self.first else f"up to {self.newest}"


@functools.cache
def load() -> dict[str, Line]:
    """Return the lines by name, the oldest first. Raises UsageError (file, line, field)."""
    return read(data.folder("fixtures") / "contract" / "lines.yaml")


def read(path: Path) -> dict[str, Line]:
    """Read such a file. Raises UsageError (file, line, field)."""
    document = documents.read(path, data.folder("fixtures") / "contract" / "lines.schema.json")
    return {entry["name"]: Line(**entry) for entry in document.value["lines"]}


def order(release: str) -> Order | None:
    """Return what releases of Grove are sorted by; None for a text that is no release, such as a proposal's name."""
    match = _RELEASE.fullmatch(release)
    return tuple(math.inf if part is None else int(part) for part in match.groups()) if match else None


def of(contract: str) -> tuple[str, str]:
    """Return line and release of a descriptor's `contract`, which is a line or a release."""
    lines = load()
    if contract in lines:
        return contract, lines[contract].newest
    current = order(contract) or ()
    line = next(line for line in reversed(lines.values()) if (order(line.first) or ()) <= current)
    return line.name, contract


def holds(begin: str, until: str, release: str) -> bool:
    """Return whether what holds from one release to another holds for a release. A text that is no release limits
    nothing, and everything holds if no release is known."""
    current, first, last = order(release), order(begin), order(until)
    return current is None or ((first is None or first <= current) and (last is None or current <= last))
