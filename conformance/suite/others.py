"""The other workers of a run, as their ledgers show them: a scene that is played alone waits until they have ended."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from conformance.suite import ledger

LOOK_EVERY = 0.2
"""Seconds between two looks at the ledger."""


def wait_until_ended(folder: Path, worker: str) -> None:
    """Return once no worker of the run but this one is left. A worker has ended when it says so, or when its process is
    gone."""
    tail, running = ledger.Tail(folder), dict[str, int]()
    while True:
        for event in tail.poll():
            match event:
                case ledger.WorkerStarted():
                    running[event.worker] = event.pid
                case ledger.WorkerEnded():
                    running.pop(event.worker, None)
                case _:
                    pass
        if not any(_alive(pid) for name, pid in running.items() if name != worker):
            return
        time.sleep(LOOK_EVERY)


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
