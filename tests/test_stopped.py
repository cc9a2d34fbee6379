"""Tests that the command ends properly when it is stopped by a signal."""

from __future__ import annotations

import subprocess
import sys

from conformance.data import PROJECT

COMMAND_SOURCE = """
import signal
from conformance import cli
cli.app = lambda standalone_mode: (print("ready", flush=True), signal.pause())
cli.main()
"""


def test_sigterm_ends_the_command_like_ctrl_c() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND_SOURCE], stdout=-1, stderr=-1, text=True, cwd=PROJECT
    ) as command:
        assert command.stdout is not None and command.stderr is not None
        assert command.stdout.readline() == "ready\n"
        command.terminate()
        assert command.wait(30) == 2 and command.stderr.read() == "grove-conformance: interrupted\n"
