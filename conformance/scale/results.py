"""Functions that name, write and read the result files of scale runs. Reading validates a file against the schema."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from conformance import bounded, disk, documents
from conformance.errors import UsageError

API_VERSION, KIND = "conformance.grove.io/v1alpha2", "ScaleResult"
SCHEMA = Path(__file__).parent / "result.schema.json"

Result = dict[str, Any]


def file_name(result: Result) -> str:
    """Return a file name that sorts by time and describes the result."""
    stamp = datetime.fromisoformat(result["startedAt"]).strftime("%Y%m%d-%H%M%S")
    parts = (result["scenario"]["name"], result["implementation"]["name"], result["binder"])
    return "-".join([stamp, *(re.sub(r"[^A-Za-z0-9_.-]+", "-", part) for part in parts)]) + ".json"


def write(result: Result, path: Path) -> None:
    """Write a result file atomically, so that a reader never sees an incomplete file. Raises HarnessError if the disk
    is full."""
    with disk.errors(location=str(path), hint="free some space"):
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
        part.replace(path)


def read(path: Path) -> Result:
    """Read a result file. Raises UsageError, with a one-line message, for a file that is not a result."""
    place = documents.display_path(path)
    value = bounded.json(bounded.content(path, bounded.LOG, place), place, "give the result of a run")
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise UsageError(f"is not a {KIND}", where=place, hint="give a file that `grove-conformance scale` wrote")
    if value.get("apiVersion") != API_VERSION:
        raise UsageError(
            f"has the apiVersion {value.get('apiVersion')}, whose markers mean something else",
            where=place,
            hint=f"measure again; this version reads {API_VERSION}",
        )
    documents.check(documents.Document(path, value, {}), SCHEMA)
    return value
