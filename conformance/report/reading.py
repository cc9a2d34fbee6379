"""Read `report.yaml` of an earlier run."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from conformance import bounded, documents
from conformance.errors import HarnessError, UsageError
from conformance.report.document import Document, validate

NAME = "report.yaml"
LONGEST = 1 << 26
"""Longest report, in bytes: reports have whole objects in them."""
_KIND = re.compile(r"^kind: ConformanceReport$", re.M)


def place(path: Path) -> Path:
    """Return the path of a report: of a folder, that of the report in it."""
    return path / NAME if path.is_dir() else path


def is_report(content: str) -> bool:
    """Return whether a text begins as a report does."""
    return _KIND.search(content[:1000]) is not None


def load(path: Path) -> Document:
    """Read the report of a run, by its path or by the folder of the run. Raises UsageError if it is none."""
    path = place(path)
    return parsed(text(path), path)


def text(path: Path) -> str:
    """Return the text of a file that may be a report. Raises UsageError."""
    return bounded.text(path, LONGEST, documents.shown(path))


def parsed(content: str, path: Path) -> Document:
    """Return the report that a text is. Raises UsageError, which names `path`."""
    try:
        found = yaml.load(content, Loader=yaml.CSafeLoader)
        validate(found)
    except (yaml.YAMLError, HarnessError) as error:
        what = " ".join(str(error).split())
        raise UsageError(what, where=documents.shown(path), hint="give the report.yaml of a run") from error
    return found  # type: ignore[no-any-return]
