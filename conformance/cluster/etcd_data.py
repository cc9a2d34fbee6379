"""The data of an etcd that does not run: copy them, and replace them by a copy.

Invariant: whenever a replacement is interrupted, `finish` leaves one complete set of data in place, the old or the new
one. A copy is filled under another name and renamed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

DATA = "etcd"
"""The folder with the data in the workspace of a cluster."""
DATABASE = Path(DATA, "member", "snap", "db")
"""The file in the workspace of which etcd's quota limits the size."""
_NEW, _OLD = "etcd.new", "etcd.old"
_UNUSED = shutil.ignore_patterns("*.tmp")
"""etcd allocates its next log file in advance: 64 MB of zeros."""


def size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def copy(source: Path, target: Path) -> None:
    """Copy data to a folder that does not exist, completely or not at all. Raises OSError."""
    beside = target.with_name(f".{target.name}.copying")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        shutil.copytree(source, beside, ignore=_UNUSED)
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def stage(source: Path, workspace: Path) -> None:
    """Copy data into a workspace, beside those that etcd uses. Raises OSError."""
    shutil.rmtree(workspace / _NEW, ignore_errors=True)
    copy(source, workspace / _NEW)


def replace(workspace: Path) -> None:
    """Replace the data of a workspace by the staged ones. Call it only while no etcd runs. Raises OSError."""
    (workspace / DATA).rename(workspace / _OLD)
    finish(workspace)


def finish(workspace: Path) -> None:
    """Finish a replacement that was interrupted after the old data were moved away, and remove what is left of one."""
    if not (workspace / DATA).exists() and (workspace / _NEW).exists():
        (workspace / _NEW).rename(workspace / DATA)
    for left_over in (_NEW, _OLD):
        shutil.rmtree(workspace / left_over, ignore_errors=True)
