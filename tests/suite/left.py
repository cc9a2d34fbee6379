"""What a run on a real cluster has left behind."""

from __future__ import annotations

import os
from pathlib import Path

import psutil


def left(state: Path) -> list[str]:
    """Return the processes with this state folder in their environment, and its folders of clusters."""
    found = [str(path) for path in state.glob("*/clusters/*") if path.is_dir()]
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:
            continue
        if environment.get("GROVE_CONFORMANCE_STATE") == str(state) and process.pid != os.getpid():
            found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
    return found
