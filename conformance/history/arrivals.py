"""The revisions of the server that have arrived, to know without a list that none is missing.

One etcd counts the writes to all resources: each write has a revision of its own, and its watch event has that
revision. A recorder that has an event of every revision up to the present one has therefore received everything.
Revisions without an event, of resources that are not watched, are missing for ever: then lists have to answer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Arrivals:
    """The revisions of the events that have arrived. Only events of watches count: a list shows the last revision of
    each object, and not those before."""

    def __init__(self) -> None:
        self._first = self._last = 0
        """The revision of the first event, and the highest one; 0 before."""
        self._missing: list[int] = []
        """The revisions between them that have not arrived."""

    def add(self, revision: int) -> None:
        """Note an event."""
        self._first = self._first or revision
        if revision > self._last:
            self._missing.extend(range((self._last or revision) + 1, revision))
            self._last = revision
            return
        place = bisect_left(self._missing, revision)
        if self._missing[place : place + 1] == [revision]:
            del self._missing[place]

    def complete(self, begin: int, end: int) -> bool:
        """Return whether an event of each revision after `begin` up to `end` is known to have arrived. Nothing is known
        of revisions before the first event."""
        if begin >= end:
            return True
        if not self._first or begin < self._first or end > self._last:
            return False
        place = bisect_right(self._missing, end)
        return not place or self._missing[place - 1] <= begin
