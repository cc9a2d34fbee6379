"""The release lines of Grove's contract: releases that agree on how PodGangs are identified
(fixtures/contract/lines.yaml)."""

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
    """A release line. `first` is its first release, empty for Grove's first line; `newest` is the release by which an
    implementation is judged if it does not name one."""

    name: str
    newest: str
    about: str
    first: str = ""

    @property
    def releases(self) -> str:
        """Return a description of the releases in this line."""
        return f"from {self.first}" if self.first else f"up to {self.newest}"


@functools.cache
def load() -> dict[str, Line]:
    """Return the lines by name, oldest first. Raises UsageError with file, line and field if their file is invalid."""
    return read(data.folder("fixtures") / "contract" / "lines.yaml")


def read(path: Path) -> dict[str, Line]:
    """Read a file of lines. Raises UsageError with file, line and field if the file is invalid."""
    document = documents.read(path, data.folder("fixtures") / "contract" / "lines.schema.json")
    return {entry["name"]: Line(**entry) for entry in document.value["lines"]}


def order(release: str) -> Order | None:
    """Return the sort key of a release of Grove; None for a string that is not a release, such as a proposal's name."""
    match = _RELEASE.fullmatch(release)
    return tuple(math.inf if part is None else int(part) for part in match.groups()) if match else None


def of(contract: str) -> tuple[str, str]:
    """Return the line and release for a descriptor's `contract`, which is a line or a release."""
    lines = load()
    if contract in lines:
        return contract, lines[contract].newest
    current = order(contract) or ()
    line = next(line for line in reversed(lines.values()) if (order(line.first) or ()) <= current)
    return line.name, contract


def holds(begin: str, until: str, release: str) -> bool:
    """Return whether a rule that holds from the release `begin` up to the release `until` holds for `release`. A bound
    that is not a release is ignored, and the rule always holds if `release` is not a release."""
    current, first, last = order(release), order(begin), order(until)
    return current is None or ((first is None or first <= current) and (last is None or current <= last))
