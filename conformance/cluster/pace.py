"""Patience with the work of a cluster: waits are longer on an overloaded machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import tenacity

USUAL = 4.0
"""Processes that want to run, for each CPU, on a machine that is busy with runs alone: limits are made for it."""
MAXIMUM = 20.0
"""The largest factor."""
_stretched = 1.0
_LOAD = Path("/proc/loadavg")


def factor() -> float:
    """Return the factor by which work takes longer than usual on this machine at present."""
    waiting = [os.getloadavg()[0]]
    with suppress(OSError, ValueError, IndexError):  # the number of the last minute lies behind that of this moment
        waiting.append(float(_LOAD.read_text(encoding="utf-8").split()[3].partition("/")[0]))
    return min(MAXIMUM, max(1.0, max(waiting) / (os.cpu_count() or 1) / USUAL))


def patience(seconds: float) -> float:
    """Return the seconds to wait for work that takes so many seconds on a machine that is not overloaded."""
    return seconds * factor() * _stretched


def stretch(time_scale: float) -> None:
    """Make the limits of this process longer by a time scale. One below 1 is for waits of scenes alone."""
    global _stretched
    _stretched = max(1.0, time_scale)


def stop_after(seconds: float) -> Callable[[tenacity.RetryCallState], bool]:
    """Return tenacity's condition that `patience` is over, which grows and shrinks with the load of the machine."""
    return lambda state: (state.seconds_since_start or 0.0) >= patience(seconds)
