"""Open files that other programs can replace, but only if they are regular files.

A FIFO in place of a log blocks a program that opens it, and reading a device may never end.
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from pathlib import Path
from typing import IO

_FLAGS = {"rb": os.O_RDONLY, "r+b": os.O_RDWR, "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT}
_FLAGS["wb"] = os.O_WRONLY | os.O_TRUNC | os.O_CREAT


def open_file(path: Path, mode: str = "rb") -> IO[bytes]:
    """Open a file unbuffered, like `Path.open`. Raises OSError, including if the path is not a regular file."""
    return os.fdopen(_descriptor(path, mode), mode, buffering=0)


def write(path: Path, content: bytes) -> None:
    """Write a file. Raises OSError like `open_file`."""
    with open_file(path, "wb") as file:
        while content:
            content = content[file.write(content) :]


class OpenFile:
    """An open file that stays the same file even if another one replaces it at its path. The file is closed when the
    last reference to this object goes away. Raises OSError like `open_file`."""

    def __init__(self, path: Path, mode: str = "rb") -> None:
        self.descriptor = _descriptor(path, mode)
        self._path = path
        weakref.finalize(self, os.close, self.descriptor)

    @property
    def name(self) -> str:
        """Return the name under which the file was opened."""
        return self._path.name

    @property
    def size(self) -> int:
        """Return the current size in bytes."""
        return os.fstat(self.descriptor).st_size

    @property
    def in_place(self) -> bool:
        """Return whether this file is still the one at its path."""
        try:
            return os.path.samestat(self._path.lstat(), os.fstat(self.descriptor))
        except OSError:
            return False

    def at(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on."""
        return os.pread(self.descriptor, size, offset)


def _descriptor(path: Path, mode: str) -> int:
    descriptor = os.open(path, _FLAGS[mode] | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor
