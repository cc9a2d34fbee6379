"""Finding and ending the processes that we caused, by a marker in their environment.

A process inherits the marker from the moment of its fork, so there is no instant at which a killed run could leave
one that cannot be found; and a reused pid does not carry it, so nothing else is ever killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

import psutil
from tenacity import Retrying, retry, retry_if_result, stop_after_delay, wait_fixed

CLUSTER = "GROVE_CONFORMANCE_CLUSTER"
STATE_ROOT = "GROVE_CONFORMANCE_STATE_ROOT"
BUILD = "GROVE_CONFORMANCE_BUILD"

Wanted = Callable[[Mapping[str, str]], bool]


def identity(pid: int) -> float | None:
    """Start time of a living process (seconds since the epoch), which together with its pid names it for ever."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def alive(pid: int, started: float) -> bool:
    """Whether that very process lives: same pid and same start time, not a zombie."""
    now = identity(pid)
    return now is not None and abs(now - started) < 0.05


def marked(wanted: Wanted) -> Iterator[tuple[psutil.Process, dict[str, str]]]:
    """Living processes whose environment is `wanted`; never this process or one of its ancestors."""
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        if process.pid in spared:
            continue
        try:
            environment = process.environ()
            if wanted(environment) and process.status() != psutil.STATUS_ZOMBIE:
                yield process, environment
        except (psutil.Error, OSError):
            continue  # gone, a zombie, or somebody else's: not ours either way


def end(wanted: Wanted, *, patience: float = 10.0) -> list[str]:
    """Kills every `wanted` process (SIGKILL) until two looks in a row find none; names them as `name (pid)`.

    Two looks, because the environment of a process reads as empty for an instant while it executes a new program.
    Raises tenacity.RetryError when some are still there after `patience` seconds.
    """
    ended: dict[int, str] = {}
    clean_looks = 0

    @retry(retry=retry_if_result(lambda clean: not clean), wait=wait_fixed(0.02), stop=stop_after_delay(patience))
    def look() -> bool:
        nonlocal clean_looks
        found = [process for process, _ in marked(wanted)]
        for process in found:
            try:
                ended.setdefault(process.pid, f"{process.name()} ({process.pid})")
                process.kill()  # psutil compares the start time first
            except psutil.Error:
                continue
        clean_looks = 0 if found else clean_looks + 1
        return clean_looks >= 2

    look()
    return list(ended.values())


def end_one(process: psutil.Process, *, patience: float = 10.0) -> None:
    """Kills one process and returns when it is gone or a zombie. Raises tenacity.RetryError after `patience` s."""
    started = process.create_time()
    process.kill()
    Retrying(retry=retry_if_result(bool), wait=wait_fixed(0.01), stop=stop_after_delay(patience))(
        lambda: alive(process.pid, started)
    )
