"""Record the times in which a machine was too slow for a verdict: the suite woke late, or a component answered late.

A late answer counts from the request until the next request that is answered in time: what happens between two
requests is as slow as they are.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, replace

LIMIT = 2.0
"""Seconds that an answer to a health check, or a wake-up of the suite, takes on a machine that is too slow. It takes
milliseconds on one that is not; limits of scenes are made for dozens of requests, one after the other."""


@dataclass(frozen=True)
class Delay:
    """A time in which the machine was too slow, in seconds of the monotonic clock. `end` is None while it lasts;
    `worst` is the longest delay, 0 if the component answered in time that it is not well."""

    component: str
    worst: float
    begin: float
    end: float | None = None

    def __str__(self) -> str:
        symptom = f"answered after {self.worst:.1f} s" if self.worst else "was not healthy"
        return f"{self.component} {symptom}"


class Lateness:
    """The times in which something was late. Any thread may write and read."""

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self._lasting: dict[str, Delay] = {}
        self._past: deque[Delay] = deque(maxlen=1000)
        self._lock = threading.Lock()

    def answered(self, component: str, begin: float, end: float, well: bool = True) -> None:
        """Note a request at `begin` that has its answer at `end`. A complaint is no answer in time."""
        with self._lock:
            lasting = self._lasting.pop(component, None)
            if not well or end - begin >= self._limit:
                delay = end - begin if end - begin >= self._limit else 0.0
                worst = max(delay, lasting.worst if lasting else 0.0)
                self._lasting[component] = Delay(component, worst, lasting.begin if lasting else begin)
            elif lasting is not None:
                self._past.append(replace(lasting, end=begin))

    def woke(self, component: str, begin: float, end: float) -> None:
        """Note a span in which a thread was to run and did not."""
        if end - begin >= self._limit:
            with self._lock:
                self._past.append(Delay(component, end - begin, begin, end))

    def between(self, begin: float, now: float) -> list[Delay]:
        """Return the delays between `begin` and now, the worst first."""
        with self._lock:
            spans = [*self._past, *self._lasting.values()]
        overlapping = [span for span in spans if span.begin < now and (span.end is None or span.end > begin)]
        return sorted(overlapping, key=lambda span: -span.worst)

    def seconds(self, begin: float, now: float) -> float:
        """Return for how many seconds from `begin` until now something was late."""
        spans = sorted(
            (max(delay.begin, begin), now if delay.end is None else min(delay.end, now))
            for delay in self.between(begin, now)
        )
        total, until = 0.0, begin
        for start, end in spans:
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total
