"""Tests that the suite waits for the complete end of a killed process, so that a successor can use its ports."""

from __future__ import annotations

import platform
import subprocess
import sys

import psutil
import pytest

from conformance.cluster import processes
from conformance.cluster.ports import is_free
from tests.cluster.waiting import wait_for

LISTENER = """
import ctypes, platform, socket, sys, threading, time
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=time.sleep, args=(1000,)).start()
print(server.getsockname()[1], flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # ends the calling thread alone
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no zombies with threads")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the number of the system call is unknown")
def test_a_zombie_whose_threads_still_listen_is_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        port, process = int(child.stdout.readline()), psutil.Process(child.pid)
        wait_for(lambda: process.status() == psutil.STATUS_ZOMBIE)
        assert processes.has_threads(process)
        assert not is_free(port)
        processes.end_one(process)
        assert not processes.has_threads(process)
        assert is_free(port)
