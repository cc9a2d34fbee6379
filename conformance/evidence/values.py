"""Values of checks as JSON and as one line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, is_dataclass
from enum import Enum

import msgspec


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
    """Return a value as one line of at most `limit` characters."""
    text = value if isinstance(value, str) else msgspec.json.encode(plain(value)).decode()
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
