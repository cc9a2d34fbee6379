"""Tests of a role that several processes play: their order, their folders, ports and logs, and the message if one of
them fails."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.implementation import loading
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import ClusterFacts, Driver, NotStarted

PROCESS_SOURCE = """
import json, os, signal, sys, time
print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "at": time.monotonic()}), flush=True)
if "dies" in sys.argv:
    raise SystemExit(3)
if "soon" in sys.argv:
    print("ready", flush=True)
    time.sleep(1)
    raise SystemExit(4)
if {"slow", "never"} & set(sys.argv):
    time.sleep(15 if "never" in sys.argv else 1)
print("ready", flush=True)
signal.pause()
"""
DESCRIPTOR = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: mine
version: "1"
roles: [operator, gang-scheduler]
schedulerName: mine
processes:
  operator:
    argv: ["${python}", "${here}/process.py", "${port.a}"]
    ready: {log: ^ready}
  gang-scheduler:
    - name: first
      argv: ["${python}", "${here}/process.py", "${port.a}", "${port.b}", "${file.f}", FIRST]
      files: {f: first}
      ready: {log: ^ready}
    - name: second
      argv: ["${python}", "${here}/process.py", "${port.a}", "${port.c}", "${file.f}", SECOND]
      files: {f: second}
      ready: {log: ^ready, within: 20}
"""
FIRST_NAME, SECOND_NAME = "gang-scheduler-first", "gang-scheduler-second"


@pytest.fixture
def create_driver(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []
    (tmp_path / "process.py").write_text(PROCESS_SOURCE)
    facts = ClusterFacts(tmp_path / "kubeconfig", tmp_path / "cluster", {}, lambda index: 21000 + index)

    def create_driver(first_mode: str = "slow", second_mode: str = "x") -> Driver:
        (tmp_path / "mine.yaml").write_text(DESCRIPTOR.replace("FIRST", first_mode).replace("SECOND", second_mode))
        drivers.append(Driver(loading.load(str(tmp_path / "mine.yaml")), facts))
        return drivers[-1]

    yield create_driver
    for driver in drivers:
        driver.stop()


def received_values(driver: Driver, name: str) -> list[dict[str, Any]]:
    """Return the values that the processes with this name have printed, in order."""
    return [json.loads(line) for line in driver.logs()[name].read_text().splitlines() if line.startswith("{")]


def test_each_process_has_its_own_folder_log_and_files_and_they_share_ports(create_driver: Any, tmp_path: Path) -> None:
    driver = create_driver()
    driver.start()
    folder = tmp_path / "cluster/implementation"
    [first_values], [second_values], [operator_values] = (
        received_values(driver, FIRST_NAME),
        received_values(driver, SECOND_NAME),
        received_values(driver, "operator"),
    )
    assert first_values["argv"][:3] == ["21001", "21002", str(folder / FIRST_NAME / "f")]
    assert second_values["argv"][:3] == ["21001", "21003", str(folder / SECOND_NAME / "f")]
    assert operator_values["argv"] == ["21000"]
    assert [first_values["cwd"], second_values["cwd"]] == [str(folder / FIRST_NAME), str(folder / SECOND_NAME)]
    assert [(folder / name / "f").read_text() for name in (FIRST_NAME, SECOND_NAME)] == ["first", "second"]
    assert second_values["at"] > first_values["at"] + 1  # the second process starts when the first process is ready
    assert operator_values["at"] < first_values["at"] + 1  # another role does not wait
    assert set(driver.logs()) == {"operator", "operator-2", FIRST_NAME, SECOND_NAME}


def test_the_end_of_one_process_is_a_failure_of_the_role_and_a_restart_restarts_all(create_driver: Any) -> None:
    driver = create_driver(first_mode="x")
    driver.start()
    pids = driver.pids(Role.GANG_SCHEDULER)
    assert list(pids) == [FIRST_NAME, SECOND_NAME]
    os.kill(pids[FIRST_NAME], signal.SIGKILL)
    driver._runners[Role.GANG_SCHEDULER].processes[0].group.wait()
    assert not driver.is_alive(Role.GANG_SCHEDULER) and driver.is_alive(Role.OPERATOR)
    [failure] = driver.failures()
    assert (failure.role, failure.process) == (Role.GANG_SCHEDULER, "first")
    assert str(failure).startswith("mine: the process first of the gang-scheduler was ended by SIGKILL; its log ends")

    driver.start()
    assert driver.pids(Role.GANG_SCHEDULER)[SECOND_NAME] == pids[SECOND_NAME]
    driver.restart(Role.GANG_SCHEDULER)
    assert not set(pids.values()) & set(driver.pids(Role.GANG_SCHEDULER).values())
    assert [len(received_values(driver, name)) for name in (FIRST_NAME, SECOND_NAME)] == [3, 2]
    driver.kill(Role.GANG_SCHEDULER)
    assert driver.pids(Role.GANG_SCHEDULER) == {} and driver.is_alive(Role.OPERATOR)
    assert len(driver.failures()) == 1


def test_a_process_that_ends_at_its_start_stops_the_processes_before_it(create_driver: Any) -> None:
    driver = create_driver(first_mode="x", second_mode="dies")
    with pytest.raises(NotStarted) as caught:
        driver.start()
    line = str(caught.value)
    assert line.startswith("mine: the process second of the gang-scheduler exited with code 3 before it was ready; its")
    assert "\n" not in line and caught.value.role == Role.GANG_SCHEDULER
    assert driver.pids(Role.GANG_SCHEDULER) == driver.pids(Role.OPERATOR) == {}


def test_a_process_that_ends_while_another_starts_ends_the_wait(create_driver: Any) -> None:
    driver = create_driver(first_mode="soon", second_mode="never")
    started_at = time.monotonic()
    with pytest.raises(
        NotStarted, match="the process first of the gang-scheduler exited with code 4 after it was ready"
    ):
        driver.start()
    assert time.monotonic() - started_at < 10


def test_the_last_words_are_those_of_all_processes(create_driver: Any) -> None:
    driver = create_driver(first_mode="x")
    driver.start()
    [operator, first_process, second_process] = driver.last_log_lines().split("; ")
    assert operator.startswith("the operator runs, and its log ends with: {")
    assert first_process.startswith("the process first of the gang-scheduler runs, and its log ends with: {")
    assert second_process.endswith("| ready")
