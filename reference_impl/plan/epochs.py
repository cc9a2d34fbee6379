"""Epochs: times in nanoseconds that identify the entries of a PodGangMap, and their order (spec GM-31, GM-33)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Epochs = Callable[[int], list[str]]
"""Returns the given number of new epochs for one replica of a set, in ascending order."""


def sort_key(epoch: str) -> tuple[int, str]:
    """Return a sort key that orders entries by the time of their creation. A key that is not an epoch comes first."""
    return (int(epoch), "") if epoch.isdecimal() else (-1, epoch)


class EpochSource:
    """Assigns epochs to new entries.

    No epoch is assigned twice within a process, and each epoch is greater than all existing ones, even if the clock
    steps backwards (COH-Q30).
    """

    def __init__(self, now: Callable[[], int]) -> None:
        """`now` returns the current time in nanoseconds."""
        self._now = now
        self._last = 0

    def take(self, count: int, existing: Iterable[str]) -> list[str]:
        """Return new epochs in ascending order, all of them later than the `existing` epochs."""
        greatest = max((sort_key(epoch)[0] for epoch in existing), default=0)
        start = max(self._now(), greatest + 1, self._last + 1)
        if count > 0:
            self._last = start + count - 1
        return [str(start + offset) for offset in range(count)]
