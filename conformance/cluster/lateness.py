"""The times in which a machine was too slow for a verdict: the suite woke up late, or a component responded late.

A delay lasts from the late request until the next request that is answered in time, because everything that happens
between two requests is as slow as they are.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, replace

LATE_SECONDS = 2.0
"""Seconds for a response to a health check, or for a wake-up of the suite, from which a machine counts as too slow.
Normally both take milliseconds. The limits of scenes allow for dozens of consecutive requests."""


@dataclass(frozen=True)
class Delay:
    """A time in which the machine was too slow, in seconds of the monotonic clock. `end` is None while it lasts;
    `worst` is the longest delay, or 0 if the component responded in time but was not healthy."""

    component: str
    worst: float
    begin: float
    end: float | None = None

    def __str__(self) -> str:
        symptom = f"answered after {self.worst:.1f} s" if self.worst else "was not healthy"
        return f"{self.component} {symptom}"


class Lateness:
    """The times in which something was late. Any thread may write and read them."""

    def __init__(self, limit: float = LATE_SECONDS) -> None:
        self._limit = limit
        self._current_delays: dict[str, Delay] = {}
        self._past_delays: deque[Delay] = deque(maxlen=1000)
        self._lock = threading.Lock()

    def record_response(self, component: str, begin: float, end: float, succeeded: bool = True) -> None:
        """Record a request that was sent at `begin` and answered at `end`. A request that did not succeed does not
        count as answered in time."""
        with self._lock:
            current_delay = self._current_delays.pop(component, None)
            if not succeeded or end - begin >= self._limit:
                delay = end - begin if end - begin >= self._limit else 0.0
                worst = max(delay, current_delay.worst if current_delay else 0.0)
                self._current_delays[component] = Delay(
                    component, worst, current_delay.begin if current_delay else begin
                )
            elif current_delay is not None:
                self._past_delays.append(replace(current_delay, end=begin))

    def record_wake_up(self, component: str, begin: float, end: float) -> None:
        """Record a span in which a thread should have run and did not."""
        if end - begin >= self._limit:
            with self._lock:
                self._past_delays.append(Delay(component, end - begin, begin, end))

    def find_delays(self, begin: float, now: float) -> list[Delay]:
        """Return the delays between `begin` and now, the worst first."""
        with self._lock:
            spans = [*self._past_delays, *self._current_delays.values()]
        overlapping = [span for span in spans if span.begin < now and (span.end is None or span.end > begin)]
        return sorted(overlapping, key=lambda span: -span.worst)

    def seconds(self, begin: float, now: float) -> float:
        """Return the number of seconds between `begin` and now in which something was late."""
        spans = sorted(
            (max(delay.begin, begin), now if delay.end is None else min(delay.end, now))
            for delay in self.find_delays(begin, now)
        )
        total, counted_until = 0.0, begin
        for start, end in spans:
            total += max(0.0, end - max(start, counted_until))
            counted_until = max(counted_until, end)
        return total
