"""Values of checks as JSON and as one line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, is_dataclass
from enum import Enum

import msgspec

from conformance.implementation.output import TAIL


def plain(value: object) -> object:
    """Return a value in JSON types: sets and keys of mappings sorted, values of unknown types as text."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, msgspec.Struct):
        return plain(msgspec.structs.asdict(value))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, AbstractSet):
        return sorted((plain(v) for v in value), key=str)
    if isinstance(value, Sequence):
        return [plain(v) for v in value]
    return str(value)


def brief(value: object, limit: int = 300) -> str:
    """Return a value as one line of at most `limit` characters. Of a log that is quoted, the end is kept, because the
    reason for a failure is there."""
    text = value if isinstance(value, str) else msgspec.json.encode(plain(value)).decode()
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head, mark, said = line.partition(TAIL)
    room = limit - len(head) - len(mark) - 1
    return f"{head}{mark}…{said[-room:]}" if mark and room > limit // 3 else line[: limit - 1] + "…"
