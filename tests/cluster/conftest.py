"""Fixtures of the cluster's tests: a state root of the test's own, and waiting on conditions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster import processes
from conformance.cluster.ports import Ports
from conformance.cluster.state import State

T = TypeVar("T")
Spawn = Callable[..., subprocess.Popen[str]]


def wait_for(condition: Callable[[], T], *, timeout: float = 30.0) -> T:
    """The first true value of `condition`; tenacity.RetryError after `timeout` seconds."""
    return Retrying(
        retry=retry_if_result(lambda value: not value), wait=wait_fixed(0.005), stop=stop_after_delay(timeout)
    )(condition)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    """A state root that no other test and no checkout shares. Whatever the test leaves in it is ended after it."""
    root = tmp_path / "state"
    monkeypatch.setenv("GROVE_CONFORMANCE_STATE", str(root))
    state = State()
    assert state.root == root
    yield state
    processes.end(lambda environment: environment.get(processes.STATE_ROOT) == str(root))
    for name in state.names():
        Ports().release(state.directory(name))


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Runs Python text in a process of its own; it is killed at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", text, *map(str, arguments)],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
