"""A process of each cluster that takes the cluster down when the process that owns the cluster has ended.

This process is started first, in a separate session. If a run is killed after that, with or without its process group,
nothing of the run's cluster is left a few seconds later. If a run is killed before, only a folder exists, which
`cluster prune` removes. A cluster without an owner has no such process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tenacity import RetryError

from conformance.cluster import processes
from conformance.cluster.ports import Ports
from conformance.cluster.state import StateRoot
from conformance.errors import UsageError
from grove_conformance import start

CHECK_INTERVAL = 1.0
"""Seconds between two checks of the owner."""


def command(root: Path, name: str, uid: str) -> list[str]:
    """Return the command line of the process."""
    return start.command("conformance.cluster.owner_watch", str(root), name, uid)


def take_down(state: StateRoot, name: str, uid: str) -> list[str]:
    """End every process of a cluster except for this process, and remove the cluster's files. Return the ended
    processes."""
    with state.lock():
        ended_processes = processes.end_marked(lambda environment: environment.get(processes.CLUSTER) == uid)
        record = state.read(name)
        if record is None or record.uid == uid:  # otherwise another cluster already has the name
            Ports().release(state.directory(name))
            state.remove(name)
    return ended_processes


def watch(state: StateRoot, name: str, uid: str, pause: Callable[[float], None] = time.sleep) -> None:
    """Return when the cluster is gone or has no owner. If its owner has ended, take the cluster down first."""
    while True:
        record = state.read(name)
        if record is None or record.uid != uid or (record.phase == "ready" and record.owner is None):
            return
        if state.abandonment_reason(name):
            # The lock may be held, the disk read-only, or a process slow to die: try again.
            with suppress(UsageError, RetryError):
                take_down(state, name, uid)
                return
        pause(CHECK_INTERVAL)


if __name__ == "__main__":
    watch(StateRoot(Path(sys.argv[1])), sys.argv[2], sys.argv[3])
