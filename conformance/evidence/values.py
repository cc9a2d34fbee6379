"""The values of checks as JSON and as one line of text."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, is_dataclass
from enum import Enum

import msgspec

from conformance.implementation.output import TAIL_PREFIX


def to_json_types(value: object) -> object:
    """Return a value as JSON types: sets and the keys of mappings are sorted, and values of unknown types become
    text."""
    if isinstance(value, Enum):
        return to_json_types(value.value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if is_dataclass(value) and not isinstance(value, type):
        return to_json_types(asdict(value))
    if isinstance(value, msgspec.Struct):
        return to_json_types(msgspec.structs.asdict(value))
    if isinstance(value, Mapping):
        return {str(k): to_json_types(v) for k, v in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, AbstractSet):
        return sorted((to_json_types(v) for v in value), key=str)
    if isinstance(value, Sequence):
        return [to_json_types(v) for v in value]
    return str(value)


def one_line(value: object, limit: int = 300) -> str:
    """Return a value as one line of at most `limit` characters. Parts of mappings and lists are left out, so that the
    rest remains readable. When a log is quoted, its end is kept, because that is where the reason for a failure is."""
    if not isinstance(value, str):
        return _abridged_json(to_json_types(value), limit)
    line = " ".join(value.split())
    if len(line) <= limit:
        return line
    head, prefix, log_end = line.partition(TAIL_PREFIX)
    room = limit - len(head) - len(prefix) - 1
    return f"{head}{prefix}…{log_end[-room:]}" if prefix and room > limit // 3 else line[: limit - 1] + "…"


def _abridged_json(value: object, limit: int) -> str:
    """Return a JSON value in at most `limit` characters: all of it, or the longest abridged form that fits."""
    complete = msgspec.json.encode(value).decode()
    if len(complete) <= limit:
        return complete
    candidates = (
        _part(value, depth, entries, width)
        for depth in range(6)
        for entries in (1, 2, 4, 8, 16)
        for width in (20, 60, limit - 20)
    )
    return max(
        (candidate for candidate in candidates if len(candidate) <= limit), key=len, default=complete[: limit - 1] + "…"
    )


def _part(value: object, depth: int, limit: int, width: int) -> str:
    """Return a JSON value with at most `depth` levels, `limit` entries on each level, and strings of `width`
    characters."""
    if isinstance(value, dict):
        entries = [
            f"{_part(key, depth, limit, width)}:{_part(value[key], depth - 1, limit, width)}"
            for key in itertools.islice(value, limit)
            if depth > 0
        ]
        return _enclose("{}", entries, len(value))
    if isinstance(value, list):
        entries = [_part(element, depth - 1, limit, width) for element in value[:limit] if depth > 0]
        return _enclose("[]", entries, len(value))
    if isinstance(value, str) and len(value) > width:
        value = _shorten(value, width)
    return msgspec.json.encode(value).decode()


def _shorten(text: str, width: int) -> str:
    """Return the start of a text, or both ends of a name, because the names of one set's objects differ at their
    ends."""
    end = 0 if " " in text else width // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def _enclose(brackets: str, entries: list[str], count: int) -> str:
    omitted_count = count - len(entries)
    entries = [*entries, f"… {omitted_count} more" if entries else "…"] if omitted_count else entries
    return f"{brackets[0]}{','.join(entries)}{brackets[1]}"
