"""Epochs: times in nanoseconds that identify the entries of a PodGangMap, and their order (spec GM-31, GM-33)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Epochs = Callable[[int], list[str]]
"""Returns so many new epochs of one replica of a set, in ascending order."""


def order(epoch: str) -> tuple[int, str]:
    """Sort key of entries by the time of their creation. A key that is no epoch comes first."""
    return (int(epoch), "") if epoch.isdecimal() else (-1, epoch)


class EpochSource:
    """Gives epochs to new entries.

    None is given twice in a process, and each is greater than those that exist, even if the clock steps backwards
    (COH-Q30).
    """

    def __init__(self, now: Callable[[], int]) -> None:
        """`now` returns the time in nanoseconds."""
        self._now = now
        self._last = 0

    def take(self, count: int, existing: Iterable[str]) -> list[str]:
        """New epochs in ascending order, later than all `existing` ones."""
        greatest = max((order(epoch)[0] for epoch in existing), default=0)
        start = max(self._now(), greatest + 1, self._last + 1)
        if count > 0:
            self._last = start + count - 1
        return [str(start + offset) for offset in range(count)]
