"""Go's notation for durations (DEF-08, VAL-45)."""

from __future__ import annotations

import re
from fractions import Fraction

_SECONDS = {
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
_TERM = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)"


def seconds(text: str) -> Fraction | None:
    """Return the seconds of a duration; None if the text is not one."""
    sign = -1 if text.startswith("-") else 1
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Fraction(0)
    if not re.fullmatch(f"(?:{_TERM})+", body, re.ASCII):
        return None
    return sign * sum((Fraction(_decimal(n)) * _SECONDS[unit] for n, unit in re.findall(_TERM, body)), Fraction(0))


def equal(first: object, second: object) -> bool:
    """Return whether two texts denote the same duration, even in different notations."""
    duration = seconds(first) if isinstance(first, str) else None
    return duration is not None and isinstance(second, str) and duration == seconds(second)


def normalized(text: str) -> str | None:
    """Return a duration of whole seconds in the form in which Go writes it; None for any other duration."""
    value = seconds(text)
    if value is None or value.denominator != 1:
        return None
    total_seconds = abs(value.numerator)
    parts = [f"{total_seconds % 60}s"]
    if total_seconds >= 60:
        parts.insert(0, f"{total_seconds // 60 % 60}m")
    if total_seconds >= 3600:
        parts.insert(0, f"{total_seconds // 3600}h")
    return ("-" if value < 0 else "") + "".join(parts)


def _decimal(text: str) -> str:
    return "0" + text if text.startswith(".") else text.removesuffix(".")
