"""Tests that a wait for a lock is reported, and times out."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from conformance.cluster import locks
from conformance.cluster.ports import Ports
from conformance.cluster.state import StateRoot
from conformance.errors import UsageError
from tests.cluster.waiting import Spawn

HOLD = """
import pathlib, sys
from conformance.cluster import locks
with locks.hold(pathlib.Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_stopped_holder_is_told_after_a_second_and_given_up_in_the_end(
    tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    reports: list[str] = []
    holder = spawn(HOLD, tmp_path / "lock")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGSTOP)
    refused = pytest.raises(UsageError, match=rf"process {holder.pid} \(.*stopped\) holds this lock .*kill -CONT")
    with refused, locks.hold(tmp_path / "lock", lambda *words: reports.append(": ".join(words)), within=0.3):
        raise AssertionError("two hold the lock")
    assert len(reports) == 1 and f"process {holder.pid}" in reports[0] and "which is stopped" in reports[0]

    holder.kill()
    with locks.hold(tmp_path / "lock", lambda *words: reports.append("again"), within=10):
        assert len(reports) == 1


def test_a_wait_for_a_build_says_that_it_takes_minutes(
    tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    monkeypatch.setattr(locks, "BUILD", 0.2)
    holder = spawn(HOLD, tmp_path / "lock")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    reported: list[str] = []
    with (
        pytest.raises(UsageError),
        locks.hold(tmp_path / "lock", lambda _, text: reported.append(text), within=locks.BUILD),
    ):
        raise AssertionError("two hold the lock")
    assert reported[0].endswith("/lock, after it has downloaded or built a program: some minutes")


def test_a_long_wait_is_reported_again(tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    monkeypatch.setattr(locks, "REMINDER", 0.1)
    reported: list[str] = []
    holder = spawn(HOLD, tmp_path / "lock")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with (
        pytest.raises(UsageError),
        locks.hold(tmp_path / "lock", lambda _, text: reported.append(text), within=0.5),
    ):
        raise AssertionError("two hold the lock")
    assert len(reported) > 2 and len(set(reported)) == 1


@pytest.mark.parametrize("place", ["state", "ports"])
def test_every_lock_of_ours_says_so(
    place: str, tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    monkeypatch.setattr(locks, "MOMENT", 0.2)
    folder = tmp_path / place
    folder.mkdir()
    holder = spawn(HOLD, folder / "lock")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(UsageError, match=f"process {holder.pid} "):
        if place == "state":
            with StateRoot(folder).lock():
                pass
        else:
            Ports(folder).claims()
    assert f"waiting for process {holder.pid} " in capfd.readouterr().err
