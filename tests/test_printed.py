"""Tests that a command whose output cannot be written or is not read ends with the right exit code and without a
traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conformance.errors import Exit

LIST_COMMAND = [sys.executable, "-m", "conformance", "list", "--profile", "gang"]


def unread_pipe() -> int:
    """Return the write end of a pipe that has no reader."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    return write_end


def test_output_that_is_not_read_is_discarded_without_a_message() -> None:
    result = subprocess.run(LIST_COMMAND, stdout=unread_pipe(), stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (Exit.OUTPUT, "")


def test_a_full_disk_is_reported() -> None:
    with Path("/dev/full").open("w") as full_disk:
        result = subprocess.run(LIST_COMMAND, stdout=full_disk, stderr=subprocess.PIPE, text=True)
    assert result.returncode == Exit.OUTPUT
    assert result.stderr == "grove-conformance: not everything could be printed: No space left on device\n"


def test_a_mistake_of_the_user_keeps_its_exit_code_if_it_cannot_be_printed() -> None:
    result = subprocess.run([*LIST_COMMAND[:-1], "gangs"], stdout=unread_pipe(), stderr=unread_pipe())
    assert result.returncode == Exit.USAGE
