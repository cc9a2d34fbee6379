"""Decide whether a record or request shows something new. An implementation that waits without success repeats the same
request, and each time reports that it has not succeeded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

from conformance.history.record import Record

MAX_ROUNDS = 5
"""The number of times that the same record or request counts as new. An implementation that will still succeed does so
in an early round or after a delay, and waits allow for that delay."""

_VARYING_PARTS = re.compile(rb'"resourceVersion":\s*"\d+"|"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
"""The parts that differ between two writes of the same state: the resourceVersion and timestamps."""


class RepetitionCounter:
    """Counts how often the same record or request has been seen."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()

    def is_new(self, item: Hashable) -> bool:
        """Count an item, and return whether it has been seen at most MAX_ROUNDS times, including this time."""
        self._counts[item] += 1
        return self._counts[item] <= MAX_ROUNDS

    def forget(self) -> None:
        """Forget all items."""
        self._counts.clear()


def state_key(record: Record) -> Hashable:
    """Return a key for the object's state in a record, without its resourceVersion and timestamps. Two records of an
    object have equal keys if nothing else differs."""
    return record.resource, record.uid, record.kind, hash(_VARYING_PARTS.sub(b"", record.raw))
