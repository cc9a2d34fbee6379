"""The programs that descriptors name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from conformance import documents
from conformance.errors import UsageError


def resolve_path(program: str, folder: Path) -> str:
    """Return the path of a program, so that it can be started from any folder. A relative path is resolved against
    `folder`, the descriptor's folder; a name without a slash is returned unchanged and found on PATH."""
    return str(folder / program) if os.sep in program else program


def find_program(program: str, location: str) -> None:
    """Raise UsageError unless `program` is an executable file or a name on PATH."""
    if shutil.which(program):
        return
    path = Path(program)
    if os.sep not in program:
        raise UsageError(f'"{program}" is not on PATH', where=location, hint="install it, or give its path")
    if not path.exists():
        raise UsageError(
            f"{documents.display_path(path)} does not exist", where=location, hint="give the path of the binary"
        )
    if path.is_dir():
        raise UsageError(
            f"{documents.display_path(path)} is a folder", where=location, hint="give the path of the binary in it"
        )
    raise UsageError(
        f"{documents.display_path(path)} is not executable",
        where=location,
        hint=f"run: chmod +x {documents.display_path(path)}",
    )
