"""Limits for the work of a cluster: waits are longer on an overloaded machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import tenacity

NORMAL_LOAD = 4.0
"""The number of runnable processes per CPU on a machine that is busy only with runs. Time limits are designed for
it."""
MAX_FACTOR = 20.0
"""The largest factor."""
_time_scale = 1.0
_LOAD_FILE = Path("/proc/loadavg")


def factor() -> float:
    """Return the factor by which work currently takes longer than usual on this machine."""
    loads = [os.getloadavg()[0]]
    with suppress(OSError, ValueError, IndexError):  # the load average of the last minute lags behind the current load
        loads.append(float(_LOAD_FILE.read_text(encoding="utf-8").split()[3].partition("/")[0]))
    return min(MAX_FACTOR, max(1.0, max(loads) / (os.cpu_count() or 1) / NORMAL_LOAD))


def patience(seconds: float) -> float:
    """Return how many seconds to wait for work that takes `seconds` on a machine that is not overloaded."""
    return seconds * factor() * _time_scale


def stretch(time_scale: float) -> None:
    """Multiply the limits of this process by a time scale. A scale below 1 has no effect here; it is only for the waits
    of scenes."""
    global _time_scale
    _time_scale = max(1.0, time_scale)


def stop_after(seconds: float) -> Callable[[tenacity.RetryCallState], bool]:
    """Return a stop condition for tenacity: `patience` is exceeded. The limit grows and shrinks with the load of the
    machine."""
    return lambda state: (state.seconds_since_start or 0.0) >= patience(seconds)
