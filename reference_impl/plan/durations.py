"""Durations in Go's notation, in which `90m` is written `1h30m0s` (spec DEF-08)."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>ns|us|µs|μs|ms|s|m|h)"
_PARTS = re.compile(_PART)
_DURATION = re.compile(rf"(?P<sign>[+-]?)(?P<parts>(?:{re.sub(r'[?]P<[a-z]+>', '?:', _PART)})+|0)")
MAX_NANOSECONDS = 2**63 - 1
"""The maximum number of nanoseconds, which Go stores as an int64."""
_MAX_TEXT_LENGTH = 200


def parse(text: str) -> int:
    """Return a duration in nanoseconds. Raises ValueError where Go's time.ParseDuration would return an error."""
    match = _DURATION.fullmatch(text) if len(text) <= _MAX_TEXT_LENGTH else None
    if match is None:
        raise ValueError(f"invalid duration {text[:_MAX_TEXT_LENGTH]!r}")
    total = sum(int(Decimal(part["number"]) * _UNITS[part["unit"]]) for part in _PARTS.finditer(match["parts"]))
    if total > MAX_NANOSECONDS:
        raise ValueError(f"invalid duration {text!r}: exceeds 64 bits of nanoseconds")
    return -total if match["sign"] == "-" else total


def format_duration(nanoseconds: int) -> str:
    """Return the text that Go's Duration.String returns."""
    if nanoseconds == 0:
        return "0s"
    sign, remaining = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    for unit in ("ns", "µs", "ms"):
        if remaining < _UNITS[unit] * 1000:
            return f"{sign}{_decimal(remaining, _UNITS[unit])}{unit}"
    minutes, seconds = divmod(remaining, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds, _UNITS['s'])}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(value: int, unit: int) -> str:
    integer, fraction = divmod(value, unit)
    digits = f"{fraction:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{integer}.{digits}" if digits else str(integer)
