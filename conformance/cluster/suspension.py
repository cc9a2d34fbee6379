"""Processes that are kept from running: stopped by a signal, or frozen by their control group.

What a process does not do while it is kept from running says nothing about its program. A process that a debugger or a
sandbox traces is in a state of its own, which passes in microseconds and does not count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

import psutil

from conformance.cluster import processes

STOPPED = "is stopped (SIGSTOP)"
FROZEN = "is frozen (by its control group)"
_PROC = Path("/proc")


def is_problem(text: str) -> bool:
    """Return whether a text is one that `find_problem` returns for a process that is kept from running."""
    return text in (STOPPED, FROZEN)


def find_problem(pid: int) -> str:
    """Return what keeps a process from running, as the end of a sentence; empty if nothing does, or if the process is
    gone."""
    state = processes.find_state(pid)
    if state == psutil.STATUS_STOPPED:
        return STOPPED
    return FROZEN if state and _is_frozen(pid) else ""


def find_descendants(pid: int) -> Iterator[int]:
    """Yield the descendants of a process; none if the system does not list the children of a process."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 (called often, and a Path costs five times as much)
    except OSError:
        return
    for thread in threads:
        try:
            children = (_PROC / str(pid) / "task" / thread / "children").read_text().split()
        except OSError:  # the thread has ended
            continue
        for child in map(int, children):
            yield child
            yield from find_descendants(child)


def _is_frozen(pid: int) -> bool:
    with suppress(OSError):
        for file, frozen_line in _state_files((_PROC / str(pid) / "cgroup").read_text()):
            with suppress(OSError):  # the root group cannot be frozen, and has no such file
                if frozen_line in file.read_text().splitlines():
                    return True
    return False


@lru_cache(maxsize=256)
def _state_files(groups: str) -> tuple[tuple[Path, str], ...]:
    """Return the files that say whether one of these control groups is frozen, with the line that says so. `groups` is
    the content of a process's file `cgroup`."""
    entries = [line.split(":", 2) for line in groups.splitlines()]
    freezers = [
        (_freezers()[controller], group)
        for _, controllers, group in entries
        for controller in controllers.split(",")
        if controller in _freezers()
    ]
    return tuple((folder / group[1:] / file_name, frozen_line) for (folder, file_name, frozen_line), group in freezers)


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
