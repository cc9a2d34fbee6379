"""Kubernetes quantities, parsed and formatted as the API machinery does it (spec HASH-060 to HASH-069)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_TEXT = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([+-]?\d+)")
_SUFFIXES = {exponent: suffix for suffix, exponent in DECIMAL.items()}
_BINARY_SUFFIXES = ("", *BINARY)
_MAXIMUM = 2**63 - 1
_NANO = 10**9
_MAX_LENGTH, _MAX_EXPONENT = 256, 999
"""Limits for the length of a text and for its exponent. Arithmetic on larger numbers could take unlimited time and
memory."""
_DIGITS = 18
_BINARY_DIGITS = 15
_LOWEST_SCALE = -9


@dataclass(frozen=True)
class Quantity:
    """A parsed quantity: `sign` `whole`.`fraction` × `base`^`exponent`. `text` is the input."""

    text: str
    sign: str
    whole: str
    fraction: str
    base: Literal[2, 10]
    exponent: int
    form: Literal["BinarySI", "DecimalSI", "DecimalExponent"]

    @property
    def int64_amount(self) -> tuple[int, int] | None:
        """The amount without its sign, as an int64 and a decimal scale, or None if it does not fit (HASH-064,
        HASH-065)."""
        multiplier, scale = 1, self.exponent
        if self.base == 10:
            precision = _DIGITS - len(self.whole) - len(self.fraction)
        elif self.fraction:
            return None
        else:
            precision = _BINARY_DIGITS - len(self.whole) - self.exponent * 3 // 10 - 1
            multiplier, scale = 2**self.exponent, 0
        scale -= len(self.fraction)
        if precision < 0 or scale < _LOWEST_SCALE:
            return None
        value = int(self.whole + self.fraction) * multiplier
        return (value, scale) if value <= _MAXIMUM else None

    @property
    def keeps_text(self) -> bool:
        """Whether the API machinery keeps the text unchanged (HASH-065, HASH-066)."""
        if self.text == "0":
            return True
        digits = self.whole + self.fraction
        if (int64_amount := self.int64_amount) is None:
            return False
        if self.base == 2:
            return self.exponent % 10 == 0 and int(digits) & 7 != 0
        return int64_amount[1] % 3 == 0 and not digits.endswith("000") and self.whole[0] != "0"

    @property
    def nanos(self) -> int:
        """The amount in billionths, rounded away from zero. A binary amount is limited to an int64 (HASH-067)."""
        digits = int(self.whole + self.fraction)
        if self.base == 2:
            amount = min(-(-digits * _NANO * 2**self.exponent // 10 ** len(self.fraction)), _MAXIMUM * _NANO)
        elif (power := self.exponent - len(self.fraction) + 9) >= 0:
            amount = digits * 10**power
        else:
            amount = -(-digits // 10**-power)
        return -int(amount) if self.sign == "-" else int(amount)


@lru_cache(4096)
def parse(text: str) -> Quantity | None:
    """Parse a quantity. Return None if it is invalid."""
    if len(text) > _MAX_LENGTH:
        return None
    match = _TEXT.fullmatch(text)
    assert match is not None  # the pattern matches every text
    whole, fraction, suffix = match[2].lstrip("0") or "0", match[3] or "", match[4]
    if not match[2] and not fraction:
        return None
    if suffix in DECIMAL:
        return Quantity(text, match[1], whole, fraction, 10, DECIMAL[suffix], "DecimalSI")
    if suffix in BINARY:
        return Quantity(text, match[1], whole, fraction, 2, BINARY[suffix], "BinarySI")
    if (power := _EXPONENT.fullmatch(suffix)) and abs(int(power[1])) <= _MAX_EXPONENT:
        return Quantity(text, match[1], whole, fraction, 10, int(power[1]), "DecimalExponent")
    return None


def parse_json(value: Any) -> Quantity | None:
    """Parse a quantity from JSON, where it may be a number. Return None if it is invalid."""
    if isinstance(value, str):
        return parse(value.strip(" "))
    return parse(repr(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None


def format_quantity(quantity: Quantity) -> str:
    """Return the text that the API machinery writes for a parsed quantity (HASH-069)."""
    if quantity.keeps_text:
        return quantity.text
    nanos = quantity.nanos
    whole, remainder = divmod(nanos, _NANO)
    if quantity.form == "BinarySI" and not remainder and abs(whole) >= 1024:
        power = 0
        while whole % 1024 == 0 and power < len(BINARY):
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY_SUFFIXES[power]}"
    mantissa, exponent = nanos, -9 if nanos else 0
    while mantissa and mantissa % 1000 == 0:
        mantissa, exponent = mantissa // 1000, exponent + 3
    if quantity.form == "DecimalExponent":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    # There is no suffix above exa. The API machinery drops the suffix, and with it most of the amount.
    return f"{mantissa}{_SUFFIXES[exponent]}" if exponent in _SUFFIXES else quantity.text
