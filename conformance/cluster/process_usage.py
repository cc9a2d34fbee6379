"""The CPU and memory usage of processes, each including its descendants."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class ProcessUsage:
    """A running process with its descendants. `cpu` is the number of CPUs in use, `cpu_seconds` the CPU time since the
    start, `memory` the resident memory in bytes, and `uptime` is in seconds."""

    name: str
    pid: int
    cpu: float
    cpu_seconds: float
    memory: int
    uptime: float


def measure(pids: Mapping[str, int], seconds: float = 1.0) -> list[ProcessUsage]:
    """Observe processes for `seconds` and return their usage by name. Processes that end meanwhile are left out."""
    families = {name: _process_tree(pid) for name, pid in pids.items()}
    start, cpu_before = time.monotonic(), {name: _cpu_seconds(family) for name, family in families.items()}
    time.sleep(seconds)
    usages = []
    for process, family in families.items():
        with suppress(psutil.Error, IndexError):
            cpu_after = _cpu_seconds(family)
            cpu = max(0.0, cpu_after - cpu_before[process]) / (time.monotonic() - start)
            uptime = time.time() - family[0].create_time()
            usages.append(ProcessUsage(process, pids[process], cpu, cpu_after, _memory(family), uptime))
    return usages


def _process_tree(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _cpu_seconds(family: Sequence[psutil.Process]) -> float:
    total = 0.0
    for process in family:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _memory(family: Sequence[psutil.Process]) -> int:
    total = 0
    for process in family:
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total
