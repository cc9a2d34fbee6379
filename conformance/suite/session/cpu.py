"""The CPU time of a worker with its cluster and the implementation. It says what a scene costs almost independently of
the load of the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import psutil


def measure(pids: Callable[[], Iterable[int]]) -> Callable[[], float]:
    """Start to measure, and return a function that returns the CPU seconds since then. A process that has started since
    counts in full, and one that has ended does not count."""
    before = _times(pids())
    return lambda: sum(seconds - before.get(pid, 0.0) for pid, seconds in _times(pids()).items())


def _times(pids: Iterable[int]) -> dict[int, float]:
    """Return the CPU seconds of this process and of each of these processes that still runs, by pid."""
    seconds = {}
    for pid in (os.getpid(), *pids):
        try:
            used = psutil.Process(pid).cpu_times()
        except psutil.Error:
            continue
        seconds[pid] = used.user + used.system
    return seconds
