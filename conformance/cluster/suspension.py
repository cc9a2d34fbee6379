"""Processes that are kept from running: stopped by a signal, or frozen by their control group.

What a process does not do while it is kept from running says nothing about its program. A process that a debugger or a
sandbox traces is in a state of its own, which passes in microseconds and does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

STOPPED = "is stopped (SIGSTOP)"
FROZEN = "is frozen (by its control group)"
_PROC = Path("/proc")


def is_problem(text: str) -> bool:
    """Return whether a text is one that `find_problem` returns for a process that is kept from running."""
    return text in (STOPPED, FROZEN)


def find_problem(pid: int) -> str:
    """Return what keeps a process from running, as the end of a sentence; empty if nothing does, or if the process is
    gone."""
    try:
        status = psutil.Process(pid).status()
    except psutil.Error:
        return ""
    if status == psutil.STATUS_STOPPED:
        return STOPPED
    return FROZEN if _is_frozen(pid) else ""


def find_descendants(pid: int) -> Iterator[int]:
    """Yield the descendants of a process; none if the system does not list the children of a process."""
    for file in _PROC.glob(f"{pid}/task/*/children"):
        try:
            children = file.read_text().split()
        except OSError:  # the thread has ended
            continue
        for child in map(int, children):
            yield child
            yield from find_descendants(child)


def _is_frozen(pid: int) -> bool:
    try:
        lines = (_PROC / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return False
    for _, controllers, group in (line.split(":", 2) for line in lines):
        for controller in controllers.split(","):
            if controller in _freezers():
                mount_point, file_name, frozen_line = _freezers()[controller]
                with suppress(OSError):  # the root group cannot be frozen, and has no such file
                    if frozen_line in (mount_point / group[1:] / file_name).read_text().splitlines():
                        return True
    return False


@cache
def _freezers() -> dict[str, tuple[Path, str, str]]:
    """Return the hierarchies of control groups that can be frozen, by their controller, which is empty in version 2:
    the folder of a hierarchy, and the file and the line in it that say that a group, or one around it, is frozen."""
    freezers = {}
    for partition in psutil.disk_partitions(all=True):
        if partition.fstype == "cgroup2":
            freezers[""] = (Path(partition.mountpoint), "cgroup.events", "frozen 1")
        elif partition.fstype == "cgroup" and "freezer" in partition.opts.split(","):
            freezers["freezer"] = (Path(partition.mountpoint), "freezer.state", "FROZEN")
    return freezers
