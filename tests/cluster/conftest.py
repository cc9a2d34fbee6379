"""Fixtures of the cluster tests: a test's own state root and processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.cluster import processes
from conformance.cluster.ports import Ports
from conformance.cluster.state import StateRoot
from tests.cluster.waiting import Spawn


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateRoot]:
    """A state root that no other test and no checkout uses. Processes that the test leaves in it are killed."""
    root = tmp_path / "state"
    monkeypatch.setenv("GROVE_CONFORMANCE_STATE", str(root))
    state = StateRoot()
    assert state.root == root
    yield state
    processes.end_marked(lambda environment: environment.get(processes.STATE_ROOT) == str(root))
    for name in state.names():
        Ports().release(state.directory(name))


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """A function that runs Python source in a separate process, which is killed at the end of the test."""
    started_processes: list[subprocess.Popen[str]] = []

    def start(source: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", source, *map(str, arguments)],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started_processes.append(process)
        return process

    yield start
    for process in started_processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
