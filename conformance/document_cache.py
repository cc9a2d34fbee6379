"""A cache of the parsed data files of the project, in the user's cache folder: reading YAML and checking it against a
JSON schema takes most of the CPU time of a short command.

The name of an entry is a digest of everything that determines its contents: the file, its schema, and the code that
reads both. An entry is therefore never out of date. A digest inside the entry shows whether the entry is damaged.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from conformance import bounded, data, disk

Field = tuple[str | int, ...]
"""The path of a value: keys and list indices from the root, e.g. `("processes", "operator", "argv", 0)`."""
LIFETIME_SECONDS = 30 * 24 * 60 * 60
"""The age in seconds at which an entry is removed, when the next entry is written."""
_CACHE_ERRORS = (OSError, ValueError, RuntimeError, msgspec.MsgspecError)
"""Errors that mean that an entry cannot be read or written, or that the user has no home folder."""


class Contents(msgspec.Struct):
    """The value of a file, and the line of each value in it."""

    value: dict[str, Any]
    lines: list[tuple[Field, int]]


def key(text: str, schema: str) -> str:
    """Return the name of the cache entry for a file's text and its schema."""
    return _digest("".join(map(_digest, (text, schema, *_code()))))


def load(key: str) -> Contents | None:
    """Return an entry; None if it does not exist, is damaged, or could have been written by another user."""
    with suppress(*_CACHE_ERRORS), _path(key).open("rb") as file:
        status, (digest, _, content) = os.fstat(file.fileno()), file.read().decode().partition("\n")
        if status.st_uid == os.getuid() and not status.st_mode & 0o077 and digest == _digest(content):
            return _decode(content)
    return None


def save(key: str, value: Mapping[str, Any], lines: Mapping[Field, int]) -> None:
    """Write an entry, unless the cache cannot be written, or JSON cannot represent the value."""
    contents = Contents({**value}, [*lines.items()])
    content = msgspec.json.encode(contents).decode()
    if _decode(content) != contents:
        return
    with suppress(*_CACHE_ERRORS):
        path = _path(key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk.write(path, f"{_digest(content)}\n{content}")
        for entry in path.parent.iterdir():
            if entry.stat().st_mtime < time.time() - LIFETIME_SECONDS:
                entry.unlink()


def _path(key: str) -> Path:
    return data.cache() / "documents" / key


def _decode(content: str) -> Contents:
    return msgspec.json.decode(content, type=Contents)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _code() -> tuple[str, ...]:
    this_file = Path(__file__)
    return tuple(
        path.read_text("utf-8") for path in (this_file, this_file.with_name("documents.py"), Path(bounded.__file__))
    )
