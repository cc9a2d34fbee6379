"""CPU seconds and peak memory of the processes that take part in a run."""

from __future__ import annotations

import os
from collections.abc import Mapping

import psutil


class Meter:
    """Reads the same processes at two times. Names → process ids; this process is `suite`."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._processes = {}
        for name, pid in {**pids, "suite": os.getpid()}.items():
            try:
                self._processes[name] = psutil.Process(pid)
            except psutil.NoSuchProcess:
                continue
        self._begin = self._cpu()

    def _cpu(self) -> dict[str, float]:
        seconds = {}
        for name, process in self._processes.items():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            seconds[name] = times.user + times.system
        return seconds

    def read(self) -> dict[str, dict[str, float]]:
        """Return for each name the CPU seconds since the beginning and the present resident memory in MiB."""
        result: dict[str, dict[str, float]] = {}
        for name, seconds in self._cpu().items():
            memory = self._processes[name].memory_info().rss / 2**20
            result[name] = {"cpuSeconds": round(seconds - self._begin[name], 2), "memoryMiB": round(memory)}
        return result
