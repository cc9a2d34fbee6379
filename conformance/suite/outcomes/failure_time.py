"""The time since which two compared values have differed."""

from __future__ import annotations

import re

import msgspec

from conformance.evidence.values import plain
from conformance.history.differences import reduced
from conformance.history.query import UNASKED, History
from conformance.history.record import Record
from conformance.suite.outcomes.checks import Moment

_WORD = re.compile(r"[a-z0-9][a-z0-9.-]*")


def last_change(history: History, description: str, expected: object, actual: object) -> float:
    """Return the last change of the objects named where two values differ, or else in what is compared; the present if
    none is named. Deleted objects count, too."""
    records = [record for record in history.records() if record.resource not in UNASKED]
    for text in (msgspec.json.encode(reduced(plain(expected), plain(actual))).decode(), description):
        words = set(_WORD.findall(text))
        if moments := [record.at for record in records if record.name in words]:
            return max(moments)
    return history.now()


def failure_time(
    history: History, description: str, expected: object, actual: object, at: Record | None = None
) -> Moment:
    """Return since when a comparison fails: `at`, or the first record that is listed as wrong, or the time of the last
    change of what differs."""
    if at is not None:
        return at
    if plain(expected) == plain(actual):
        return None
    return _listed(history, actual) or round(last_change(history, description, expected, actual), 3)


def _listed(history: History, actual: object) -> Record | None:
    """Return the first record of a list of records as text."""
    texts = {text for text in actual if isinstance(text, str)} if isinstance(actual, list | tuple) else set()
    return next((record for record in history.records() if str(record) in texts), None) if texts else None
