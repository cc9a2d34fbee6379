"""Irregular files that an attacker can put in place of a regular one."""

from __future__ import annotations

import os
from pathlib import Path

KINDS = ("fifo", "device", "folder")


def create(kind: str, path: Path) -> None:
    """Create an irregular file of this kind, one of KINDS, at a path."""
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
