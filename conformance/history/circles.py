"""Tell whether a record or request shows something new. An implementation that waits in vain goes round in circles: it
tries the same again and again, and reports each time that it has not succeeded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable

from conformance.history.record import Record

ROUNDS = 5
"""How often the same may come before it says nothing new. Who does something at last does it in an early round, or
after a delay: that is waited for once it goes round in circles."""

_VARIES = re.compile(rb'"resourceVersion":\s*"\d+"|"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
"""What differs between two writes of the same: the version and times."""


class Circles:
    """Counts how often the same has come."""

    def __init__(self) -> None:
        self._seen: Counter[Hashable] = Counter()

    def new(self, what: Hashable) -> bool:
        """Return whether it has come at most ROUNDS times, this time included."""
        self._seen[what] += 1
        return self._seen[what] <= ROUNDS

    def forget(self) -> None:
        """Begin anew."""
        self._seen.clear()


def state(record: Record) -> Hashable:
    """Return the state that a record shows of its object, without times: the same as before if nothing else differs."""
    return record.resource, record.uid, record.kind, hash(_VARIES.sub(b"", record.raw))
