"""Find the time since which two compared values have differed."""

from __future__ import annotations

import re

import msgspec

from conformance.evidence.values import to_json_types
from conformance.history.differences import reduced
from conformance.history.query import PASSIVE_RESOURCES, History
from conformance.history.record import Record
from conformance.suite.outcomes.checks import Moment

_WORD = re.compile(r"[a-z0-9][a-z0-9.-]*")


def last_change(history: History, description: str, expected: object, actual: object) -> float:
    """Return the time of the last change to the objects that are named in the differing parts of the two values or, if
    these name no object, in the description. Return the current time if no object is named. Deleted objects also
    count."""
    records = [record for record in history.records() if record.resource not in PASSIVE_RESOURCES]
    for text in (msgspec.json.encode(reduced(to_json_types(expected), to_json_types(actual))).decode(), description):
        words = set(_WORD.findall(text))
        if moments := [record.at for record in records if record.name in words]:
            return max(moments)
    return history.now()


def failure_time(
    history: History, description: str, expected: object, actual: object, at: Record | None = None
) -> Moment:
    """Return the moment since which a comparison has failed: `at`, or the first record that `actual` lists, or the time
    of the last change to the objects that differ. Return None if the values are equal."""
    if at is not None:
        return at
    if to_json_types(expected) == to_json_types(actual):
        return None
    return _listed(history, actual) or round(last_change(history, description, expected, actual), 3)


def _listed(history: History, actual: object) -> Record | None:
    """Return the first record of the history whose text is in the list `actual`."""
    texts = {text for text in actual if isinstance(text, str)} if isinstance(actual, list | tuple) else set()
    return next((record for record in history.records() if str(record) in texts), None) if texts else None
