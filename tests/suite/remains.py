"""Processes and folders that a run on a real cluster has left behind."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from conformance.cluster.processes import STATE_ROOT


def remains(state: Path) -> list[str]:
    """Return the processes of the runs with this state folder, and the folders of clusters in it."""
    leftovers = [str(path) for path in state.glob("*/clusters/*") if path.is_dir()]
    return leftovers + [f"{process.pid} {command[:80]}" for process, command in processes(state)]


def processes(state: Path) -> list[tuple[psutil.Process, str]]:
    """Return the processes of the runs with this state folder, each with its command line. Programs of an
    implementation inherit only the marker of their cluster."""
    processes = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            roots = environment.get("GROVE_CONFORMANCE_STATE", ""), environment.get(STATE_ROOT, "")
            if process.pid != os.getpid() and any(
                str(state) in (root, *map(str, Path(root).parents)) for root in roots
            ):
                processes.append((process, " ".join(process.cmdline())))
        except psutil.Error:  # the process has ended meanwhile
            continue
    return processes
