"""Tests that late responses are recorded, and that timeouts are extended on an overloaded machine. The tests need no
cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.cluster import pace
from conformance.cluster.lateness import LATE_SECONDS, Lateness
from conformance.cluster.outages import CHECK_INTERVAL, SUITE
from tests.cluster.test_outages import Clock, manual_watcher


def test_a_late_answer_counts_until_the_next_request_that_is_answered_in_time() -> None:
    lateness = Lateness()
    lateness.record_response("kwok", 10, 10.1)
    assert lateness.seconds(0, 12) == 0
    lateness.record_response("kwok", 12, 12 + LATE_SECONDS)
    lateness.record_response("kwok", 14, 17)
    assert (lateness.seconds(0, 20), lateness.seconds(18, 20), lateness.seconds(0, 13)) == (8, 2, 1)
    lateness.record_response("kwok", 21, 21.1)
    assert lateness.seconds(0, 30) == 9 and lateness.seconds(21, 30) == 0
    assert str(lateness.find_delays(0, 30)[0]) == "kwok answered after 3.0 s"


def test_a_complaint_is_not_an_answer_in_time() -> None:
    lateness = Lateness()
    lateness.record_response("etcd", 5, 5, succeeded=False)
    assert lateness.seconds(0, 8) == 3
    assert str(lateness.find_delays(0, 8)[0]) == "etcd was not healthy"
    lateness.record_response("etcd", 8, 9 + LATE_SECONDS)
    assert str(lateness.find_delays(0, 10)[0]) == f"etcd answered after {1 + LATE_SECONDS:.1f} s"


def test_time_in_which_two_components_are_late_counts_once() -> None:
    lateness = Lateness()
    for component, start, end in (("etcd", 1, 3), ("kwok", 2, 5)):
        lateness.record_response(component, start, start + LATE_SECONDS)
        lateness.record_response(component, end, end)
    assert lateness.seconds(0, 9) == 4 and lateness.seconds(4, 9) == 1


def test_a_suite_that_wakes_late_counts_as_slow() -> None:
    clock = Clock()
    watcher = manual_watcher(lambda: "", clock)
    clock.now += CHECK_INTERVAL + LATE_SECONDS / 2
    watcher.check()
    assert watcher.slow(0) == (0, [])
    clock.now += CHECK_INTERVAL + 2
    watcher.check()
    seconds, [delay] = watcher.slow(0)
    assert (seconds, delay.component) == (2, SUITE) and watcher.overlapping(0) == []


@pytest.mark.parametrize(
    ("load", "running_processes", "factor"), [(1, 2, 1), (8, 8, 1), (40, 3, 5), (1, 60, 7.5), (9999, 1, 20)]
)
def test_patience_grows_with_the_load_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, load: float, running_processes: int, factor: float
) -> None:
    (tmp_path / "loadavg").write_text(f"{load} 1.0 1.0 {running_processes}/900 1234\n")
    monkeypatch.setattr(pace, "_LOAD_FILE", tmp_path / "loadavg")
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 1.0, 1.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert pace.patience(30) == 30 * factor
