"""Open files that a program of somebody else can reach: regular ones only.

A FIFO in the place of a log blocks whoever opens it, and a device may have no end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

_FLAGS = {"rb": os.O_RDONLY, "r+b": os.O_RDWR, "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT}


def opened(path: Path, mode: str = "rb") -> IO[bytes]:
    """Open a file without a buffer, as `Path.open` does. Raises OSError, also for whatever is no regular file."""
    return os.fdopen(descriptor(path, mode), mode, buffering=0)


def descriptor(path: Path, mode: str = "rb") -> int:
    """Open a file and return its descriptor, as `opened`."""
    found = os.open(path, _FLAGS[mode] | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o666)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return found
