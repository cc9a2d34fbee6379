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
    with disk.usage_errors(location=str(path), hint="free some space"):
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
        temporary.replace(path)


def read(path: Path) -> Result:
    """Read a result file. Raises UsageError, with a one-line message, for a file that is not a result."""
    location = documents.display_path(path)
    value = bounded.json(bounded.content(path, bounded.MAX_LOG_BYTES, location), location, "give the result of a run")
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise UsageError(f"is not a {KIND}", where=location, hint="give a file that `grove-conformance scale` wrote")
    if value.get("apiVersion") != API_VERSION:
        raise UsageError(
            f"has the apiVersion {value.get('apiVersion')}, whose markers mean something else",
            where=location,
            hint=f"measure again; this version reads {API_VERSION}",
        )
    documents.check(documents.Document(path, value, {}), SCHEMA)
    return value
