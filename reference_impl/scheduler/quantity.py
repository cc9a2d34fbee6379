"""Kubernetes quantities as exact integers in thousandths of a unit."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIXES = {s: Decimal(10) ** power for s, power in _DECIMAL.items()} | {
    s: Decimal(2) ** power for s, power in _BINARY.items()
}


@lru_cache(maxsize=4096)
def thousandths(text: str | int | float) -> int:
    """Return a quantity in thousandths, rounded up: `500m` → 500, `2` → 2000, `1Gi` → 1073741824000. Raises
    decimal.InvalidOperation for an invalid quantity."""
    value = str(text)
    suffix = value.lstrip("+-.0123456789")
    scale = _SUFFIXES.get(suffix)
    # Other suffixes are exponents: 1e3, 1E3.
    number = Decimal(value) if scale is None else Decimal(value.removesuffix(suffix)) * scale
    return int((number * 1000).to_integral_value(rounding="ROUND_CEILING"))
