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
        self._first_revision = self._last_revision = 0
        """The revision of the first event, and the highest revision so far; 0 before the first event."""
        self._missing: list[int] = []
        """The revisions between these two whose events have not arrived, in ascending order."""

    def add(self, revision: int) -> None:
        """Record that the event with this revision has arrived."""
        self._first_revision = self._first_revision or revision
        if revision > self._last_revision:
            self._missing.extend(range((self._last_revision or revision) + 1, revision))
            self._last_revision = revision
            return
        index = bisect_left(self._missing, revision)
        if self._missing[index : index + 1] == [revision]:
            del self._missing[index]

    def is_complete(self, start: int, end: int) -> bool:
        """Return whether the event of each revision after `start` and up to `end` is known to have arrived. Nothing is
        known about revisions before the first event."""
        if start >= end:
            return True
        if not self._first_revision or start < self._first_revision or end > self._last_revision:
            return False
        index = bisect_right(self._missing, end)
        return not index or self._missing[index - 1] <= start
