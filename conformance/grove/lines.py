"""The lines of Grove's contract: releases that agree on how PodGangs are known (fixtures/contract/lines.yaml)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from conformance import data, documents

NAMES, MAPS = "names", "maps"


@dataclass(frozen=True)
class Line:
    """A line: the releases that follow it, and what it is known by."""

    name: str
    releases: str
    about: str


@functools.cache
def load() -> dict[str, Line]:
    """Return the lines by name. Raises UsageError (file, line, field)."""
    return read(data.folder("fixtures") / "contract" / "lines.yaml")


def read(path: Path) -> dict[str, Line]:
    """Read such a file. Raises UsageError (file, line, field)."""
    document = documents.read(path, data.folder("fixtures") / "contract" / "lines.schema.json")
    return {entry["name"]: Line(**entry) for entry in document.value["lines"]}
