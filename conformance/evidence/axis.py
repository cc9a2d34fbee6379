"""A time axis on which long spans without events are shortened."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

MAX_GAP, SHORTENED_GAP = 4.0, 0.6
"""The length in seconds above which a span without events is shortened, and the length it is shortened to."""
TICK_WIDTH = 64.0
"""Minimum distance between two ticks in pixels."""


class Axis:
    """Maps the seconds from `start` to `end` onto `width` pixels. `timestamps` are the times of the events."""

    def __init__(self, timestamps: Iterable[float], end: float, width: float, start: float = 0.0) -> None:
        self._times = sorted({start, max(end, start + 0.001), *(m for m in timestamps if start < m < end)})
        gaps = [later - earlier for earlier, later in pairwise(self._times)]
        lengths = [gap if gap <= MAX_GAP else SHORTENED_GAP for gap in gaps]
        scale = width / sum(lengths)
        self._scale = scale
        self._positions = [0.0]
        for gap in lengths:
            self._positions.append(self._positions[-1] + gap * scale)
        self.breaks = [(self._positions[i], self._positions[i + 1], gap) for i, gap in enumerate(gaps) if gap > MAX_GAP]
        """The shortened spans: their start and end in pixels, and their real length in seconds."""

    def x(self, time: float) -> float:
        """Return the horizontal position of a time, in pixels."""
        i = min(max(bisect_right(self._times, time) - 1, 0), len(self._times) - 2)
        start, end = self._times[i], self._times[i + 1]
        fraction = min(max((time - start) / (end - start), 0.0), 1.0)
        return self._positions[i] + fraction * (self._positions[i + 1] - self._positions[i])

    def ticks(self) -> list[float]:
        """Return evenly spaced, round times for ticks: as many as fit, and none within a shortened span."""
        step = _round_up(TICK_WIDTH / self._scale)
        candidates = []
        for i, (start, end) in enumerate(pairwise(self._times)):
            if self._positions[i + 1] - self._positions[i] < (end - start) * self._scale * 0.99:
                continue
            first = math.ceil(start / step - 1e-9)
            last = math.floor(end / step + 1e-9)
            candidates += [round(n * step, 3) for n in range(first, last + 1)]
        spaced_ticks: list[float] = []
        for tick in sorted(set(candidates)):
            if not spaced_ticks or self.x(tick) - self.x(spaced_ticks[-1]) >= TICK_WIDTH * 0.6:
                spaced_ticks.append(tick)
        return spaced_ticks


def _round_up(seconds: float) -> float:
    """Round up to the next of 0.1, 0.2, 0.5, 1, 2, 5, … seconds."""
    power = 10.0 ** math.floor(math.log10(max(seconds, 0.1)))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= seconds - 1e-9 or digit == 10)
