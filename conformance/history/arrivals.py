"""The server revisions whose events have arrived, which show without a list request that no event is missing.

An etcd numbers the writes to all resources: each write has its own revision, and its watch event carries that revision.
A recorder that has an event for every revision up to the current one has therefore received everything. A write to a
resource that is not watched leaves a permanent gap; then the recorder must compare lists instead.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Arrivals:
    """The revisions of the events that have arrived. Only watch events count: a list shows only the last revision of
    each object."""

    def __init__(self) -> None:
        self._first = self._last = 0
        """The revision of the first event, and the highest revision so far; 0 before the first event."""
        self._missing: list[int] = []
        """The revisions between these two whose events have not arrived, in ascending order."""

    def add(self, revision: int) -> None:
        """Record that the event with this revision has arrived."""
        self._first = self._first or revision
        if revision > self._last:
            self._missing.extend(range((self._last or revision) + 1, revision))
            self._last = revision
            return
        index = bisect_left(self._missing, revision)
        if self._missing[index : index + 1] == [revision]:
            del self._missing[index]

    def complete(self, begin: int, end: int) -> bool:
        """Return whether the event of each revision after `begin` and up to `end` is known to have arrived. Nothing is
        known about revisions before the first event."""
        if begin >= end:
            return True
        if not self._first or begin < self._first or end > self._last:
            return False
        index = bisect_right(self._missing, end)
        return not index or self._missing[index - 1] <= begin
