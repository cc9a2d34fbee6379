"""The machine of a run: its description, and the CPU time that the processes of the run and other processes used."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil


def describe() -> dict[str, Any]:
    """Return the known properties that determine the speed of this machine."""
    return {
        "cpus": os.cpu_count() or 0,
        "cpuModel": _cpu_model(),
        "memoryMiB": round(psutil.virtual_memory().total / 2**20),
        "architecture": platform.machine(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def load_averages() -> list[float]:
    """Return the load averages of the last 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    model_names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(model_names, platform.processor())


class ResourceMeter:
    """Reads the same processes, and the whole machine, at two times. `pids` maps names to process ids. This process has
    the name `suite`, and the recorder is one of its threads."""

    def __init__(self, pids: Mapping[str, int], recorder: int | None = None) -> None:
        self._recorder = recorder
        self._recorder_seconds = _thread_cpu(recorder)
        self._processes = {}
        for name, pid in {**pids, "suite": os.getpid()}.items():
            try:
                self._processes[name] = psutil.Process(pid)
            except psutil.NoSuchProcess:
                continue
        self._start_seconds = self._cpu()
        self._busy_seconds, self._stolen_seconds = _machine_cpu()
        self._monotonic, self._wall_time = time.monotonic(), time.time()

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
        """Return for each name the CPU seconds since the start and the current resident memory in MiB."""
        result: dict[str, dict[str, float]] = {}
        for name, seconds in self._cpu().items():
            memory = self._processes[name].memory_info().rss / 2**20
            result[name] = {"cpuSeconds": round(seconds - self._start_seconds[name], 2), "memoryMiB": round(memory)}
        return result

    def machine(self) -> dict[str, float]:
        """Return, since the start: the elapsed seconds, the CPU seconds of the whole machine, the CPU seconds that no
        process of the run used, the CPU seconds of the recorder, and the jump of the wall clock; and also the current
        load average."""
        cpu_of_components = sum(seconds - self._start_seconds[name] for name, seconds in self._cpu().items())
        busy_seconds, stolen_seconds = _machine_cpu()
        elapsed_seconds = time.monotonic() - self._monotonic
        foreign_seconds = (
            max(0.0, busy_seconds - self._busy_seconds - cpu_of_components) + stolen_seconds - self._stolen_seconds
        )
        return {
            "seconds": round(elapsed_seconds, 3),
            "busyCpuSeconds": round(busy_seconds - self._busy_seconds, 2),
            "foreignCpuSeconds": round(foreign_seconds, 2),
            "foreignShare": round(foreign_seconds / max(elapsed_seconds * (os.cpu_count() or 1), 0.001), 3),
            "recorderCpuSeconds": round(_thread_cpu(self._recorder) - self._recorder_seconds, 2),
            "loadAverage": load_averages()[0],
            "clockJumpSeconds": round(time.time() - self._wall_time - elapsed_seconds, 3),
        }


def _thread_cpu(thread: int | None) -> float:
    """Return the CPU seconds of a thread of this process; 0 if there is none."""
    matches = (entry for entry in psutil.Process().threads() if entry.id == thread)
    return sum(float(entry.user_time + entry.system_time) for entry in matches)


def _machine_cpu() -> tuple[float, float]:
    """Return the CPU seconds that processes of this machine have used, and those that the host gave to other
    machines."""
    times = psutil.cpu_times()
    return times.user + times.system + getattr(times, "nice", 0.0), getattr(times, "steal", 0.0)
