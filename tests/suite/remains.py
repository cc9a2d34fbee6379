"""Processes and folders that a run on a real cluster has left behind."""

from __future__ import annotations

import os
from pathlib import Path

import psutil


def remains(state: Path) -> list[str]:
    """Return the processes with this state folder in their environment, and the folders of clusters in it."""
    leftovers = [str(path) for path in state.glob("*/clusters/*") if path.is_dir()]
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.environ().get("GROVE_CONFORMANCE_STATE") != str(state):
                continue
            leftovers.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        except psutil.Error:  # the process has ended meanwhile
            continue
    return leftovers
