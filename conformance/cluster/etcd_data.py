"""The data of an etcd that does not run: copy them, and replace them by a copy.

Invariant: whenever a replacement is interrupted, one complete set of data is there, the old or the new one. `whole`
says where, and `finish` puts it in its place. A copy is filled under another name and renamed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

DATA = "etcd"
"""The folder with the data in the workspace of a cluster."""
DATABASE = Path(DATA, "member", "snap", "db")
"""The file in the workspace of which etcd's quota limits the size."""
_UNUSED = shutil.ignore_patterns("*.tmp")
"""etcd allocates its next log file in advance: 64 MB of zeros."""


def size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def whole(target: Path) -> Path | None:
    """Return the place of the complete data of `target`, also if a replacement was interrupted."""
    return next((path for path in (target, _new(target)) if path.exists()), None)


def stage(source: Path, target: Path) -> None:
    """Copy data to a place beside `target`, completely or not at all. Raises OSError."""
    filling = _filling(target)
    for left_over in (_new(target), filling):
        shutil.rmtree(left_over, ignore_errors=True)
    try:
        shutil.copytree(source, filling, ignore=_UNUSED)
        filling.rename(_new(target))
    except BaseException:
        shutil.rmtree(filling, ignore_errors=True)
        raise


def replace(target: Path) -> None:
    """Put the staged data in the place of those at `target`, if there are any. No etcd may run on them. Raises
    OSError."""
    if target.exists():
        shutil.rmtree(_old(target), ignore_errors=True)
        target.rename(_old(target))
    finish(target)


def remove(target: Path) -> None:
    """Remove data: at once, or not at all. Raises OSError."""
    target.rename(_old(target))
    finish(target)


def finish(target: Path) -> None:
    """Finish a replacement that was interrupted after the old data were moved away, and remove its remains.
    Raises OSError."""
    if not target.exists() and _new(target).exists():
        _new(target).rename(target)
    for left_over in (_new(target), _old(target), _filling(target)):
        shutil.rmtree(left_over, ignore_errors=True)


def interrupted(folder: Path) -> set[Path]:
    """Return the targets in a folder of which an interrupted replacement has left something. Their names have no
    dots."""
    return {folder / path.name.strip(".").partition(".")[0] for path in folder.glob("*") if "." in path.name}


def _new(target: Path) -> Path:
    return target.with_name(f"{target.name}.new")


def _old(target: Path) -> Path:
    return target.with_name(f"{target.name}.old")


def _filling(target: Path) -> Path:
    return target.with_name(f".{target.name}.new.copying")
