"""Functions that write to disk: a full or read-only disk is reported in one line, and no reader ever sees a partly
written file."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from conformance.errors import UsageError

USER_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
    | {errno.ENAMETOOLONG, errno.ELOOP}
)
"""Error numbers that the user can fix. All other operating system errors are bugs of the suite."""


_created_folders: list[Path] = []
"""The folders that this process has created, each listed before its parent."""


def remove_empty_folders() -> None:
    """Remove the empty folders that this process has created, so that a command that ends with a usage error leaves no
    trace."""
    for folder in _created_folders:
        with suppress(OSError):
            folder.rmdir()


def make_folder(folder: Path, *, location: str, hint: str, mode: int = 0o777) -> None:
    """Create `folder` if it does not exist. Raises UsageError if it cannot be created."""
    missing = [directory for directory in (folder, *folder.parents) if not directory.exists()]
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        _created_folders.extend(missing)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=location, hint=hint) from error


def require_space(folder: Path, size: int, *, location: str, hint: str) -> None:
    """Create `folder` if it does not exist. Raises UsageError unless the folder is writable and `size` bytes are
    free."""
    make_folder(folder, location=location, hint=hint)
    try:
        tempfile.TemporaryFile(dir=folder).close()
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=location, hint=hint) from error
    if free_bytes < size:
        raise UsageError(
            f"no space: {free_bytes >> 20} MiB are free, {size >> 20} MiB are needed", where=location, hint=hint
        ) from None


def used_bytes(folder: Path) -> int:
    """Return the total size in bytes of all files below a folder; 0 if there are none."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # the file has just been removed
            total += path.lstat().st_size
    return total


@contextmanager
def usage_errors(location: str, hint: str) -> Iterator[None]:
    """Turn the errors of a full or read-only disk into UsageError."""
    try:
        yield
    except OSError as error:
        if error.errno not in USER_ERRORS:
            raise
        file = f" ({error.filename})" if error.filename else ""
        raise UsageError(f"cannot be written: {error.strerror}{file}", where=location, hint=hint) from error


def publish(path: Path, text: str) -> None:
    """Write a world-readable file (subject to the umask), completely or not at all."""
    write(path, text)
    umask = os.umask(0)
    os.umask(umask)
    path.chmod(0o666 & ~umask)


def write(path: Path, text: str) -> None:
    """Write a file that only its user can read (0600), completely or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.touch(mode=0o600)
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
