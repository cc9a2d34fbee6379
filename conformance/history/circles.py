"""Decide whether a record or request shows something new. An implementation that waits in vain repeats the same request
again and again, and reports each time that it has not succeeded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

from conformance.history.record import Record

ROUNDS = 5
"""How often the same record or request may come before it is no longer new. An implementation that still succeeds does
so in an early round or after a delay, and a wait allows for the delay."""

_VARIES = re.compile(rb'"resourceVersion":\s*"\d+"|"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
"""The parts that differ between two writes of the same state: the version and times."""


class Circles:
    """Counts how often the same record or request has come."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()

    def new(self, item: Hashable) -> bool:
        """Return whether an item has come at most ROUNDS times, this time included."""
        self._counts[item] += 1
        return self._counts[item] <= ROUNDS

    def forget(self) -> None:
        """Begin anew."""
        self._counts.clear()


def state(record: Record) -> Hashable:
    """Return the state that a record shows of its object, without times: the same as before if nothing else differs."""
    return record.resource, record.uid, record.kind, hash(_VARIES.sub(b"", record.raw))
