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

HOLDER_SOURCE = """
import pathlib, sys
from conformance.cluster import locks
with locks.hold(pathlib.Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_stopped_holder_is_reported_before_the_wait_times_out(
    tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "FIRST_MESSAGE_SECONDS", 0.1)
    reports: list[str] = []
    holder = spawn(HOLDER_SOURCE, tmp_path / "lock")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGSTOP)
    expectation = pytest.raises(UsageError, match=rf"process {holder.pid} \(.*stopped\) holds this lock .*kill -CONT")
    with expectation, locks.hold(tmp_path / "lock", lambda *words: reports.append(": ".join(words)), timeout=0.3):
        raise AssertionError("two hold the lock")
    assert len(reports) == 1 and f"process {holder.pid}" in reports[0] and "which is stopped" in reports[0]

    holder.kill()
    with locks.hold(tmp_path / "lock", lambda *words: reports.append("again"), timeout=10):
        assert len(reports) == 1


def test_a_wait_for_a_build_says_that_it_takes_minutes(
    tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "FIRST_MESSAGE_SECONDS", 0.1)
    monkeypatch.setattr(locks, "BUILD_WAIT_SECONDS", 0.2)
    holder = spawn(HOLDER_SOURCE, tmp_path / "lock")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    messages: list[str] = []
    with (
        pytest.raises(UsageError),
        locks.hold(tmp_path / "lock", lambda _, text: messages.append(text), timeout=locks.BUILD_WAIT_SECONDS),
    ):
        raise AssertionError("two hold the lock")
    assert messages[0].endswith("/lock, after it has downloaded or built a program: some minutes")


def test_a_long_wait_is_reported_again(tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "FIRST_MESSAGE_SECONDS", 0.1)
    monkeypatch.setattr(locks, "REMINDER_SECONDS", 0.1)
    messages: list[str] = []
    holder = spawn(HOLDER_SOURCE, tmp_path / "lock")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with (
        pytest.raises(UsageError),
        locks.hold(tmp_path / "lock", lambda _, text: messages.append(text), timeout=0.5),
    ):
        raise AssertionError("two hold the lock")
    assert len(messages) > 2 and len(set(messages)) == 1


@pytest.mark.parametrize("owner", ["state", "ports"])
def test_the_locks_of_state_and_ports_report_their_holder(
    owner: str, tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(locks, "FIRST_MESSAGE_SECONDS", 0.1)
    monkeypatch.setattr(locks, "SHORT_WAIT_SECONDS", 0.2)
    folder = tmp_path / owner
    folder.mkdir()
    holder = spawn(HOLDER_SOURCE, folder / "lock")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(UsageError, match=f"process {holder.pid} "):
        if owner == "state":
            with StateRoot(folder).lock():
                pass
        else:
            Ports(folder).claims()
    assert f"waiting for process {holder.pid} " in capfd.readouterr().err
