"""Finds and ends the processes that the suite has caused, by a marker in their environment.

A process has the marker from the moment of its fork, so a killed run never leaves a process that cannot be found. A
process with a reused pid does not have the marker, so no other process is ever killed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from tenacity import Retrying, retry, retry_if_result, stop_after_delay, wait_fixed

CLUSTER = "GROVE_CONFORMANCE_CLUSTER"
STATE_ROOT = "GROVE_CONFORMANCE_STATE_ROOT"
BUILD = "GROVE_CONFORMANCE_BUILD"

_MIN_EPOCH_SECONDS = 1e9
"""A number of seconds that exceeds any uptime and is less than the time since the epoch."""
_STATES = {
    b"T": psutil.STATUS_STOPPED,
    b"t": psutil.STATUS_TRACING_STOP,
    b"Z": psutil.STATUS_ZOMBIE,
    b"X": psutil.STATUS_DEAD,
}
"""The states in /proc that matter here."""
EnvironmentPredicate = Callable[[Mapping[str, str]], bool]


def find_start_time(pid: int) -> float | None:
    """Return the start time of a living process in seconds, which together with the pid identifies the process
    permanently.

    On Linux the start time is relative to boot; relative to the epoch, it would change whenever the clock is set.
    """
    if (fields := _proc_fields(pid)) is not None:
        state, ticks = fields[0], fields[19]
        return None if state == b"Z" else int(ticks) / os.sysconf("SC_CLK_TCK")
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def find_state(pid: int) -> str:
    """Return the state of a process as `psutil.STATUS_…`; empty if the process is gone. Called twice a second for each
    process of a cluster, so it reads one file."""
    if (fields := _proc_fields(pid)) is not None:
        return _STATES.get(fields[0], psutil.STATUS_RUNNING)
    try:
        return str(psutil.Process(pid).status())
    except psutil.Error:
        return ""


def is_alive(pid: int, expected: float) -> bool:
    """Return whether exactly this process is alive: same pid and start time, and not a zombie. Records of earlier
    versions have the start time in seconds since the epoch."""
    actual = find_start_time(pid)
    if actual is not None and expected > _MIN_EPOCH_SECONDS > actual:
        with suppress(psutil.Error):
            actual = psutil.Process(pid).create_time()
    return actual is not None and abs(actual - expected) < 0.05


def _proc_fields(pid: int) -> list[bytes] | None:
    """Return the fields of a process in /proc, starting with its state; None if the process is gone or there is no
    /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None


def find_marked(matches: EnvironmentPredicate) -> Iterator[tuple[psutil.Process, dict[str, str]]]:
    """Yield living processes whose environment `matches`, except for this process and its ancestors."""
    spared_pids = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        if process.pid in spared_pids:
            continue
        try:
            environment = process.environ()
            if matches(environment) and process.status() != psutil.STATUS_ZOMBIE:
                yield process, environment
        except (psutil.Error, OSError):
            continue  # gone, a zombie, or another user's process


def end_marked(matches: EnvironmentPredicate, *, wait_budget: float = 60.0) -> list[str]:
    """Kill (SIGKILL) every process that `matches`, and its descendants, until two consecutive scans find none. Return
    the killed processes as `name (pid)`. Descendants are included because they may have emptied their environment.

    Two scans are needed because the environment of a process appears empty for an instant while the process executes a
    new program. Raises tenacity.RetryError if processes are alive after `wait_budget` seconds: on a busy machine, a
    killed API server takes more than ten seconds to release its memory.
    """
    ended_processes: dict[int, str] = {}
    clean_scans = 0

    @retry(
        retry=retry_if_result(lambda is_clean: not is_clean), wait=wait_fixed(0.02), stop=stop_after_delay(wait_budget)
    )
    def scan() -> bool:
        nonlocal clean_scans
        targets = _with_descendants([process for process, _ in find_marked(matches)])
        for process in targets:
            try:
                ended_processes.setdefault(process.pid, f"{process.name()} ({process.pid})")
                process.kill()  # psutil compares the start time first
            except psutil.Error:
                continue
        clean_scans = 0 if targets else clean_scans + 1
        return clean_scans >= 2

    scan()
    return list(ended_processes.values())


def _with_descendants(roots: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return the processes and their descendants, each process after its descendants: when it dies, they would get
    another parent and could not be found any more."""
    children: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter() if roots else ():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                children[process.ppid()].append(process)
    members = {root.pid: root for root in roots}
    pending = list(roots)
    while pending:
        new_children = [child for child in children[pending.pop().pid] if child.pid not in members]
        members |= {child.pid: child for child in new_children}
        pending += new_children
    for spared in (psutil.Process(), *psutil.Process().parents()):
        members.pop(spared.pid, None)
    return list(reversed(members.values()))


def end_one(process: psutil.Process, *, wait_budget: float = 10.0) -> None:
    """Kill one process and return when it is gone or is a zombie without other threads: until the last thread has
    ended, the process's ports are in use. Raises tenacity.RetryError after `wait_budget` seconds."""
    start_time = find_start_time(process.pid)
    process.kill()
    Retrying(retry=retry_if_result(bool), wait=wait_fixed(0.01), stop=stop_after_delay(wait_budget))(
        lambda: (start_time is not None and is_alive(process.pid, start_time)) or has_threads(process)
    )


def has_threads(process: psutil.Process) -> bool:
    """Return whether a zombie still has threads in addition to its first one."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() > 1
    except psutil.Error:
        return False
