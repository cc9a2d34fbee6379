"""Tests that a command whose output cannot be written or is not read ends with its own exit code and without a
traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conformance.errors import Exit

LIST = [sys.executable, "-m", "conformance", "list", "--profile", "gang"]


def unread_pipe() -> int:
    """Return the write end of a pipe that has no reader."""
    read, write = os.pipe()
    os.close(read)
    return write


def test_output_that_is_not_read_is_dropped_silently() -> None:
    done = subprocess.run(LIST, stdout=unread_pipe(), stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (Exit.OUTPUT, "")


def test_a_full_disk_is_reported() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(LIST, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == Exit.OUTPUT
    assert done.stderr == "grove-conformance: not everything could be printed: No space left on device\n"


def test_a_mistake_that_cannot_be_printed_is_still_a_mistake_of_the_user() -> None:
    done = subprocess.run([*LIST[:-1], "gangs"], stdout=unread_pipe(), stderr=unread_pipe())
    assert done.returncode == Exit.USAGE
