"""How a Kubernetes quantity looks in a Go dump (spec HASH-060 to HASH-067): the parser's own representation, which
depends on the notation as well as on the amount."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_TEXT = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(.*)", re.DOTALL)
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT = re.compile(r"[eE]([+-]?\d+)")
_MOST = 2**63 - 1
_DIGITS = 18
_BINARY_DIGITS = 15
_LOWEST_SCALE = -9
_WORD = 2**64


def _dump(value: int, scale: int, decimal: str, cache: str, form: str) -> str:
    return (
        f"{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} "
        f"d:(resource.infDecAmount){{Dec:(*inf.Dec){decimal}}} s:(string){cache} Format:(resource.Format){form}}}"
    )


ABSENT = _dump(0, 0, "<nil>", "", "")


def dump(value: Any) -> str:
    """The dump of a quantity as it stands in JSON: a text or a number; what is no quantity looks like none."""
    if value is None:
        return ABSENT
    return _parsed(value.strip(" ") if isinstance(value, str) else repr(value))


@lru_cache(4096)
def _parsed(text: str) -> str:
    if text == "0":
        return _dump(0, 0, "<nil>", "0", "DecimalSI")
    match = _TEXT.fullmatch(text)
    assert match is not None  # every text fits
    sign, whole, fraction, suffix = match[1], match[2].lstrip("0"), match[3] or "", match[4]
    if not match[2] and not fraction:
        return ABSENT
    if suffix in _DECIMAL:
        base, exponent, form = 10, _DECIMAL[suffix], "DecimalSI"
    elif suffix in _BINARY:
        base, exponent, form = 2, _BINARY[suffix], "BinarySI"
    elif power := _EXPONENT.fullmatch(suffix):
        base, exponent, form = 10, int(power[1]), "DecimalExponent"
    else:
        return ABSENT
    whole = whole or "0"
    return _fast(text, sign, whole, fraction, base, exponent, form) or _slow(
        sign, whole, fraction, base, exponent, form
    )


def _fast(text: str, sign: str, whole: str, fraction: str, base: int, exponent: int, form: str) -> str:
    """The amount as an int64 with a decimal scale (HASH-064, HASH-065); empty where it does not fit."""
    digits = int(whole + fraction)
    multiplier, scale = 1, exponent
    if base == 10:
        precision = _DIGITS - len(whole) - len(fraction)
    elif fraction:
        return ""
    else:
        precision = _BINARY_DIGITS - len(whole) - exponent * 3 // 10 - 1
        multiplier, scale = 2**exponent, 0
    scale -= len(fraction)
    value = digits * multiplier
    if precision < 0 or scale < _LOWEST_SCALE or value > _MOST:
        return ""
    if base == 2:
        kept = exponent % 10 == 0 and digits & 7 != 0
    else:
        kept = scale % 3 == 0 and not (whole + fraction).endswith("000") and whole[0] != "0"
    return _dump(-value if sign == "-" else value, scale, "<nil>", text if kept else "", form)


def _slow(sign: str, whole: str, fraction: str, base: int, exponent: int, form: str) -> str:
    """The amount as an arbitrary decimal (HASH-067)."""
    unscaled, scale = int(whole + fraction), len(fraction)
    if base == 10:
        scale -= exponent
    else:
        unscaled *= 2**exponent
    if unscaled:
        exact = unscaled * 10 ** max(0, 9 - scale)
        divisor = 10 ** max(0, scale - 9)
        unscaled, scale = -(-exact // divisor), 9
        if form == "BinarySI":
            if unscaled > _MOST * 10**9:
                unscaled, scale = _MOST, 0
            elif unscaled < 10**9:
                form = "DecimalSI"
    negative = "true" if sign == "-" and unscaled else "false"
    decimal = f"{{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat){_words(unscaled)}}} scale:(inf.Scale){scale}}}"
    return _dump(0, 0, decimal, "", form)


def _words(number: int) -> str:
    """The 64-bit words of a number, lowest first."""
    if not number:
        return "<nil>"
    words = []
    while number:
        number, word = divmod(number, _WORD)
        words.append(str(word))
    return f"[{' '.join(words)}]"
