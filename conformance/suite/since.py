"""Since when two compared values have differed."""

from __future__ import annotations

import re

import msgspec

from conformance.evidence.values import plain
from conformance.history.differences import reduced
from conformance.history.query import UNASKED, History
from conformance.history.record import Record

_WORD = re.compile(r"[a-z0-9][a-z0-9.-]*")


def last_change(history: History, what: str, expected: object, seen: object) -> float:
    """Return the last change of the objects named where two values differ, or else in what is compared; the present if
    none is named. Deleted objects count, too."""
    records = [record for record in history.records() if record.resource not in UNASKED]
    for text in (msgspec.json.encode(reduced(plain(expected), plain(seen))).decode(), what):
        words = set(_WORD.findall(text))
        if moments := [record.at for record in records if record.name in words]:
            return max(moments)
    return history.now()


def since(history: History, what: str, expected: object, seen: object, at: Record | None = None) -> float | None:
    """Return since when a comparison fails: the time of the record, if there is one, or the last change of what
    differs."""
    if at is not None:
        return round(at.at, 3)
    return round(last_change(history, what, expected, seen), 3) if plain(expected) != plain(seen) else None
