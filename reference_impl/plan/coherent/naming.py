"""Names of gangs of a PodGangMap: `<set>-<replica index>-<number>`, where the number is a time in nanoseconds (spec
COH-036, COH-101, COH-165). Gangs made before there was a map keep their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

DIGITS = 19
"""Digits of a time in nanoseconds, from the year 2001 to the year 2286."""


def number(gang: str) -> int | None:
    """The number at the end of a name; None if it is the name of a gang made before there was a map."""
    tail = gang.rpartition("-")[2]
    return int(tail) if len(tail) == DIGITS and tail.isdecimal() else None


def order(gang: str) -> tuple[int, str]:
    """Sort key by creation: gangs made before there was a map first, the base gang in front (COH-243)."""
    return number(gang) or 0, gang


def newest(gangs: Iterable[str]) -> str | None:
    """The gang that was created last; None if there is none."""
    return max(gangs, key=order, default=None)


class Names:
    """Gives names to new gangs.

    No number is given twice in a process, and each is greater than those of the gangs that exist, even if the clock
    steps backwards (COH-Q30).
    """

    def __init__(self, now: Callable[[], int]) -> None:
        """`now` returns the time in nanoseconds."""
        self._now = now
        self._last = 0

    def take(self, prefix: str, count: int, existing: Iterable[str]) -> list[str]:
        """Names of new gangs, in the order in which they are created. `prefix` is `<set>-<replica index>`."""
        greatest = max((number(gang) or 0 for gang in existing), default=0)
        first = max(self._now(), greatest + 1, self._last + 1)
        if count > 0:
            self._last = first + count - 1
        return [f"{prefix}-{first + offset}" for offset in range(count)]


NameSource = Callable[[int], list[str]]
"""Returns names for so many new gangs of one replica of a set."""
