"""Tests that the processes of a cluster are found through their pid files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from conformance.cluster import processes
from conformance.cluster.assets import Assets
from conformance.cluster.components import Components
from conformance.errors import HarnessError

MARKER = {processes.CLUSTER: "tests-components"}
SLEEP = [sys.executable, "-I", "-S", "-c", "import time; print(flush=True); time.sleep(600)"]


@pytest.fixture
def components(tmp_path: Path) -> Components:
    new_components = Components("one", tmp_path, MARKER)
    (new_components.workspace / "pids").mkdir(parents=True)
    return new_components


@pytest.fixture
def etcd(components: Components) -> Iterator[subprocess.Popen[bytes]]:
    process = start_process(components, MARKER)
    yield process
    process.kill()
    process.wait()


def start_process(components: Components, marker: dict[str, str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(SLEEP, env=os.environ | marker, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        output.readline()  # Linux shows the environment of a process only after it has begun to execute the program
    (components.workspace / "pids" / "etcd.pid").write_text(str(process.pid))
    return process


def test_the_environment_of_a_process_is_read_once(
    components: Components, etcd: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = psutil.Process.environ

    def environ(process: psutil.Process) -> dict[str, str]:
        reads.append(process.pid)
        return read(process)

    monkeypatch.setattr(psutil.Process, "environ", environ)
    for _ in range(10):
        process = components.process("etcd")
        assert process is not None and process.pid == etcd.pid
    assert reads == [etcd.pid]


def test_the_end_of_a_process_is_noticed_immediately(components: Components, etcd: subprocess.Popen[bytes]) -> None:
    assert components.process("etcd") is not None
    etcd.kill()
    psutil.wait_procs([psutil.Process(etcd.pid)], timeout=0.2)  # it stays a zombie until its parent waits for it
    assert components.process("etcd") is None
    etcd.wait()
    assert components.process("etcd") is None


def test_a_process_that_replaces_another_is_verified(components: Components, etcd: subprocess.Popen[bytes]) -> None:
    assert components.process("etcd") is not None
    unmarked_process = start_process(components, {})
    try:
        assert components.process("etcd") is None
    finally:
        unmarked_process.kill()
        unmarked_process.wait()
    successor = start_process(components, MARKER)
    try:
        process = components.process("etcd")
        assert process is not None and process.pid == successor.pid
    finally:
        successor.kill()
        successor.wait()


def test_a_reused_pid_does_not_identify_the_same_process(
    components: Components, etcd: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert components.process("etcd") is not None
    start_time = processes.find_start_time(etcd.pid)
    assert start_time is not None
    monkeypatch.setattr(processes, "find_start_time", lambda pid: start_time + 1)
    monkeypatch.setattr(psutil.Process, "environ", lambda process: {})
    assert components.process("etcd") is None


def test_a_component_without_a_readable_pid_is_not_running(components: Components) -> None:
    assert components.process("etcd") is None
    (components.workspace / "pids" / "etcd.pid").write_text("")
    assert components.process("etcd") is None


def test_a_failure_of_kwokctl_names_the_component_that_has_died(
    components: Components, etcd: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    (components.workspace / "logs").mkdir()
    components.log("etcd").write_text("the reason")
    kwokctl = tmp_path / "kwokctl"
    kill = f"kill -9 {etcd.pid} && until ps -o stat= -p {etcd.pid} | grep -q Z; do :; done"
    kwokctl.write_text(f"#!/bin/sh\necho another reason\n[ $3 = good ] || {{ {kill}; }}\nexit 1\n")
    kwokctl.chmod(0o700)
    assets = Assets(**dict.fromkeys(Assets.__dataclass_fields__, kwokctl))
    with pytest.raises(HarnessError, match="kwokctl good failed: another reason"):
        components.kwokctl(assets, kwokctl, "good")
    with pytest.raises(HarnessError, match="etcd died: the reason"):
        components.kwokctl(assets, kwokctl, "bad")
