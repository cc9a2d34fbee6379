"""The speed of the machine during a scene. Time in which the machine was too slow does not count."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from conformance.cluster.lateness import Delay
from conformance.errors import HarnessError

SlowTime = Callable[[float], tuple[float, Sequence[Delay]]]
"""Returns the number of seconds, since a time of the monotonic clock, in which the machine was too slow, and the delays
that showed it."""
NEGLIGIBLE_SECONDS = 1.0
"""Seconds of slowness that do not justify a longer wait."""
MAX_EXTENSION = 4
"""Maximum extension of a wait, as a multiple of its length. After that, there is no verdict."""


def never_slow(start: float) -> tuple[float, Sequence[Delay]]:
    """Report that the machine was never slow, for environments in which its speed is not observed."""
    return 0.0, ()


class Machine:
    """The speed of the machine as seen by one test."""

    def __init__(self, slow_time: SlowTime = never_slow, clock: Callable[[], float] = time.monotonic) -> None:
        self._slow_time, self._clock = slow_time, clock

    def now(self) -> float:
        """Return the current time, for use with `slow_seconds` and `require`."""
        return self._clock()

    def slow_seconds(self, start: float) -> float:
        """Return the seconds since `start` in which the machine was too slow."""
        return self._slow_time(start)[0]

    def too_slow(self, start: float, activity: str) -> HarnessError:
        """Return the error with which a scene ends if it cannot be judged because the machine was too slow."""
        seconds, delays = self._slow_time(start)
        reason = f" ({delays[0]}; {seconds:.0f} of {self._clock() - start:.0f} s were like that)" if delays else ""
        hint = "give it less to do, or a larger --time-scale"
        return HarnessError(f"the machine was too slow: {activity}{reason}", hint=hint)

    def require(self, start: float, activity: str) -> None:
        """Raise HarnessError if the machine was too slow at any time since `start`."""
        if self.slow_seconds(start) > 0:
            raise self.too_slow(start, activity)
