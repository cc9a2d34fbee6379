"""Irregular files that an attacker can create in place of regular files."""

from __future__ import annotations

import os
from pathlib import Path

KINDS = ("fifo", "device", "folder")


def create(kind: str, path: Path) -> None:
    """Create an irregular file at a path. `kind` is one of KINDS."""
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
