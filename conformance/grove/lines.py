"""The release lines of Grove's contract: releases that agree on how PodGangs are identified
(fixtures/contract/lines.yaml)."""

from __future__ import annotations

import functools
import math
import re
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from conformance import data, formats
from conformance.formats import Format, Text

NAMES, MAPS = "names", "maps"
_RELEASE = re.compile(r"v(\d+)\.(\d+)\.(\d+)(?:-alpha\.(\d+)(?:-rc(\d+))?)?")

SortKey = tuple[float, ...]


Release = Annotated[str, Meta(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+(-alpha\.[0-9]+(-rc[0-9]+)?)?$")]


class ReleaseLine(Format, frozen=True):
    """A release line. `first` is its first release, empty for Grove's first line; `newest` is the release by which an
    implementation is judged if it does not name one."""

    name: Literal["names", "maps"]
    newest: Release
    about: Annotated[Text, Meta(description="what it is known by")]
    first: Release = ""

    @property
    def releases(self) -> str:
        """Return a description of the releases in this line."""
        return f"from {self.first}" if self.first else f"up to {self.newest}"


class LineList(Format, frozen=True):
    """The format of lines.yaml."""

    api_version: Literal["conformance.grove.io/v1alpha1"]
    kind: Literal["ContractLines"]
    lines: Annotated[list[ReleaseLine], Meta(min_length=2)]


@functools.cache
def load() -> dict[str, ReleaseLine]:
    """Return the lines by name, oldest first. Raises UsageError with file, line and field if their file is invalid."""
    return read(data.folder("fixtures") / "contract" / "lines.yaml")


def read(path: Path) -> dict[str, ReleaseLine]:
    """Read a file of lines. Raises UsageError with file, line and field if the file is invalid."""
    return {line.name: line for line in formats.read(path, LineList)[1].lines}


def sort_key(release: str) -> SortKey | None:
    """Return the sort key of a release of Grove; None for a string that is not a release, such as a proposal's name."""
    match = _RELEASE.fullmatch(release)
    return tuple(math.inf if part is None else int(part) for part in match.groups()) if match else None


def line_and_release(contract: str) -> tuple[str, str]:
    """Return the line and release for a descriptor's `contract`, which is a line or a release."""
    lines = load()
    if contract in lines:
        return contract, lines[contract].newest
    release_key = sort_key(contract) or ()
    line = next(line for line in reversed(lines.values()) if (sort_key(line.first) or ()) <= release_key)
    return line.name, contract


def holds(first_release: str, last_release: str, release: str) -> bool:
    """Return whether a rule that holds from the release `first_release` up to the release `last_release` holds for
    `release`. A bound that is not a release is ignored, and the rule always holds if `release` is not a release."""
    release_key, first, last = sort_key(release), sort_key(first_release), sort_key(last_release)
    return release_key is None or ((first is None or first <= release_key) and (last is None or release_key <= last))
