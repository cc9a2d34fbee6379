"""64-bit FNV-1a over a text in pieces, and its encoding as a label value (spec HASH-020, HASH-021).

A byte of the text is combined only with the lowest byte of the state; the rest of the state is only multiplied. The
effect of a piece on a state is therefore one multiplication and one addition, which depend only on the piece and on the
lowest byte. Pieces repeat in every template and their effects are cached, so known text costs one step per piece
instead of one per byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

OFFSET = 14695981039346656037
_PRIME = 1099511628211
_MASK = 2**64 - 1
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_DIGIT_TABLE = str.maketrans({digit: _ALPHABET[ord(digit) % len(_ALPHABET)] for digit in "0123456789"})


@lru_cache(1 << 15)
def _effect(piece: str, low_byte: int) -> tuple[int, int]:
    """Return the factor and the summand of a piece for states with this lowest byte."""
    state = low_byte
    data = piece.encode()
    for byte in data:
        state = (state ^ byte) * _PRIME & _MASK
    factor = _factor(len(data))
    return factor, (state - low_byte * factor) & _MASK


@cache
def _factor(length: int) -> int:
    return pow(_PRIME, length, _MASK + 1)


def advance(state: int, pieces: Iterable[str]) -> int:
    """Return the state after these pieces of text."""
    for piece in pieces:
        factor, summand = _effect(piece, state & 255)
        state = (state * factor + summand) & _MASK
    return state


def encode(state: int) -> str:
    """Return the label value for a state."""
    return str(state).translate(_DIGIT_TABLE)
