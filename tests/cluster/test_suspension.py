"""Tests that a process which is kept from running is told from one that has nothing to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from conformance.cluster import suspension
from tests.cluster.waiting import wait_for

V2 = ("cgroup.freeze", "1", "0")
FREEZERS = {
    "/sys/fs/cgroup/freezer": ("freezer.state", "FROZEN", "THAWED"),
    "/sys/fs/cgroup/unified": V2,
    "/sys/fs/cgroup": V2,
}
"""Maps the usual folders of control groups to the file that freezes a group, and to what is written to it."""


@pytest.fixture
def sleeper() -> Iterator[psutil.Popen]:
    with psutil.Popen([sys.executable, "-c", "import signal; signal.pause()"], stdin=subprocess.DEVNULL) as process:
        yield process
        if process.poll() is None:
            process.kill()


def test_a_process_is_stopped_until_it_continues(sleeper: psutil.Popen) -> None:
    assert suspension.find_problem(sleeper.pid) == ""
    sleeper.suspend()
    wait_for(lambda: suspension.find_problem(sleeper.pid) == suspension.STOPPED)
    sleeper.resume()
    wait_for(lambda: suspension.find_problem(sleeper.pid) == "")


def test_a_process_that_is_gone_is_not_kept_from_running(sleeper: psutil.Popen) -> None:
    sleeper.kill()
    sleeper.wait()
    assert suspension.find_problem(sleeper.pid) == ""


@pytest.mark.parametrize("folder", FREEZERS)
def test_a_process_is_frozen_until_it_is_thawed(sleeper: psutil.Popen, folder: str) -> None:
    outer, (file, frozen, thawed) = Path(folder) / f"grove-conformance-{os.getpid()}", FREEZERS[folder]
    if not os.access(Path(folder) / "cgroup.procs", os.W_OK):
        pytest.skip("this user cannot change control groups there")
    inner = outer / "inner"
    inner.mkdir(parents=True)
    try:
        (inner / "cgroup.procs").write_text(str(sleeper.pid))
        (outer / file).write_text(frozen)
        wait_for(lambda: suspension.find_problem(sleeper.pid) == suspension.FROZEN)
        (outer / file).write_text(thawed)
        wait_for(lambda: suspension.find_problem(sleeper.pid) == "")
    finally:
        (outer / file).write_text(thawed)
        sleeper.terminate()
        sleeper.wait()
        wait_for(lambda: not (inner / "cgroup.procs").read_text())
        inner.rmdir()
        outer.rmdir()


@pytest.mark.parametrize(
    ("kind", "options", "line", "file", "state"),
    [
        ("cgroup2", "rw", "0::/own", "cgroup.events", "populated 1\nfrozen 1\n"),
        ("cgroup", "rw,cpu,freezer", "5:cpu,freezer:/own", "freezer.state", "FROZEN\n"),
    ],
)
def test_the_state_of_a_control_group_is_read_in_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, options: str, line: str, file: str, state: str
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / str(os.getpid())).mkdir()
    (tmp_path / str(os.getpid()) / "cgroup").write_text(f"9:memory:/other\n{line}\n")
    mounted = type("Mounted", (), {"fstype": kind, "opts": options, "mountpoint": str(tmp_path)})
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: [mounted])
    monkeypatch.setattr(suspension, "_PROC", tmp_path)
    clear_caches()
    try:
        assert suspension.find_problem(os.getpid()) == ""
        (tmp_path / "own" / file).write_text(state)
        assert suspension.find_problem(os.getpid()) == suspension.FROZEN
        (tmp_path / "own" / file).write_text(state.replace("1", "0").replace("FROZEN", "THAWED"))
        assert suspension.find_problem(os.getpid()) == ""
    finally:
        clear_caches()


def clear_caches() -> None:
    suspension._freezers.cache_clear()
    suspension._state_files.cache_clear()
