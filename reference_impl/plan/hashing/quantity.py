"""Go's dump of a Kubernetes quantity (spec HASH-060 to HASH-067). It shows the parser's internal representation, which
depends on the notation as well as on the amount."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from reference_impl.plan.quantities import Quantity, parse

_MAXIMUM = 2**63 - 1
_WORD = 2**64


def _dump(value: int, scale: int, decimal: str, cache: str, form: str) -> str:
    return (
        f"{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} "
        f"d:(resource.infDecAmount){{Dec:(*inf.Dec){decimal}}} s:(string){cache} Format:(resource.Format){form}}}"
    )


ABSENT = _dump(0, 0, "<nil>", "", "")


def dump(value: Any) -> str:
    """Return the dump of a quantity from JSON, which is a string or a number. An invalid quantity is dumped like an
    absent one."""
    if value is None:
        return ABSENT
    return _dump_text(value.strip(" ") if isinstance(value, str) else repr(value))


@lru_cache(4096)
def _dump_text(text: str) -> str:
    quantity = parse(text)
    if quantity is None:
        return ABSENT
    if text == "0":
        return _dump(0, 0, "<nil>", "0", "DecimalSI")
    if (int64_amount := quantity.int64_amount) is None:
        return _dump_decimal(quantity)
    value, scale = int64_amount
    cache = text if quantity.keeps_text else ""
    return _dump(-value if quantity.sign == "-" else value, scale, "<nil>", cache, quantity.form)


def _dump_decimal(quantity: Quantity) -> str:
    """Return the dump with the amount as an arbitrary-precision decimal (HASH-067)."""
    unscaled, scale, form = int(quantity.whole + quantity.fraction), len(quantity.fraction), str(quantity.form)
    if quantity.base == 10:
        scale -= quantity.exponent
    else:
        unscaled *= 2**quantity.exponent
    if unscaled:
        scaled_amount = unscaled * 10 ** max(0, 9 - scale)
        divisor = 10 ** max(0, scale - 9)
        unscaled, scale = -(-scaled_amount // divisor), 9
        if form == "BinarySI":
            if unscaled > _MAXIMUM * 10**9:
                unscaled, scale = _MAXIMUM, 0
            elif unscaled < 10**9:
                form = "DecimalSI"
    negative = "true" if quantity.sign == "-" and unscaled else "false"
    decimal = f"{{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat){_words(unscaled)}}} scale:(inf.Scale){scale}}}"
    return _dump(0, 0, decimal, "", form)


def _words(number: int) -> str:
    """Return the 64-bit words of a number, lowest first."""
    if not number:
        return "<nil>"
    words = []
    while number:
        number, word = divmod(number, _WORD)
        words.append(str(word))
    return f"[{' '.join(words)}]"
