"""Functions that copy the data of an etcd that is not running, and that replace the data with a copy.

Invariant: whenever a replacement is interrupted, one complete set of data remains, either the old or the new one.
`complete_data` returns its location, and `finish_replacement` moves it to its place. A copy is filled under another
name and then renamed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

DATA = "etcd"
"""The folder with the data in the workspace of a cluster."""
DATABASE = Path(DATA, "member", "snap", "db")
"""The file in the workspace whose size etcd's quota limits."""
_UNUSED = shutil.ignore_patterns("*.tmp")
"""Not copied: etcd preallocates its next log file, which is 64 MB of zeros."""


def size(folder: Path) -> int:
    """Return the total size in bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def complete_data(target: Path) -> Path | None:
    """Return the location of the complete data of `target`, even if a replacement was interrupted."""
    return next((path for path in (target, _new(target)) if path.exists()), None)


def stage(source: Path, target: Path) -> None:
    """Copy data to a location next to `target`, completely or not at all. Raises OSError if the copy fails."""
    partial_copy = _partial_copy(target)
    for leftover in (_new(target), partial_copy):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        shutil.copytree(source, partial_copy, ignore=_UNUSED)
        partial_copy.rename(_new(target))
    except BaseException:
        shutil.rmtree(partial_copy, ignore_errors=True)
        raise


def replace(target: Path) -> None:
    """Replace the data at `target`, if there are any, with the staged data. No etcd may be running on them. Raises
    OSError if the data cannot be moved."""
    if target.exists():
        shutil.rmtree(_old(target), ignore_errors=True)
        target.rename(_old(target))
    finish_replacement(target)


def remove(target: Path) -> None:
    """Remove data completely, or not at all. Raises OSError if they cannot be moved."""
    target.rename(_old(target))
    finish_replacement(target)


def finish_replacement(target: Path) -> None:
    """Finish a replacement that was interrupted after the old data had been moved away, and remove its remaining files.
    Raises OSError if a file cannot be moved."""
    if not target.exists() and _new(target).exists():
        _new(target).rename(target)
    for leftover in (_new(target), _old(target), _partial_copy(target)):
        shutil.rmtree(leftover, ignore_errors=True)


def interrupted_targets(folder: Path) -> set[Path]:
    """Return the targets in a folder for which an interrupted replacement has left files. The names of targets contain
    no dots."""
    return {folder / path.name.strip(".").partition(".")[0] for path in folder.glob("*") if "." in path.name}


def _new(target: Path) -> Path:
    return target.with_name(f"{target.name}.new")


def _old(target: Path) -> Path:
    return target.with_name(f"{target.name}.old")


def _partial_copy(target: Path) -> Path:
    return target.with_name(f".{target.name}.new.copying")
