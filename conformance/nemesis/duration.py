"""Durations as users write them on a command line."""

from __future__ import annotations

import re

from conformance.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_seconds(text: str, option: str) -> float:
    """Return the number of seconds in a duration such as 90s, 30m or 1h30m. Raises UsageError if the text is not a
    duration."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)([smh])", text)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
        raise UsageError("is no duration", where=f"{option} {text}", hint="for example 90s, 30m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
