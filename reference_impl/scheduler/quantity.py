"""Kubernetes quantities as exact integers of thousandths."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"), "P": Decimal("1e15"), "E": Decimal("1e18"),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


@lru_cache(maxsize=4096)
def thousandths(text: str | int | float) -> int:
    """`500m` → 500, `2` → 2000, `1Gi` → 1073741824000; rounded up. Raises decimal.InvalidOperation for no quantity."""
    value = str(text)
    suffix = value.lstrip("+-.0123456789")
    if suffix in _SUFFIXES:
        number = Decimal(value[: len(value) - len(suffix)]) * _SUFFIXES[suffix]
    else:  # exponents: 1e3, 1E3
        number = Decimal(value)
    return int((number * 1000).to_integral_value(rounding="ROUND_CEILING"))
