"""Tests of the detection of outages. Threads are real; tests that simulate an outage of the suite itself use a fake
clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conformance.cluster.controlplane import Cluster
from conformance.cluster.health import Health
from conformance.cluster.outages import (
    DEAD,
    SUITE,
    UNNOTICED_SECONDS,
    MonitoredComponent,
    Outage,
    Watcher,
    watch,
)
from conformance.cluster.ports import Port
from conformance.cluster.state import ClusterRecord, Owner, StateRoot
from conformance.cluster.suspension import STOPPED
from tests.cluster.waiting import wait_for


class Recovered(Exception):
    """Raised by a later check, which shows that the checks have continued."""


class Clock:
    """A clock that moves only when a test sets it."""

    def __init__(self) -> None:
        self.now, self.offset = 100.0, 0.0

    def __call__(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now + self.offset


@contextmanager
def run_watcher(*components: MonitoredComponent, silence: float = 0.3) -> Iterator[Watcher]:
    watcher = Watcher(components, silence=silence)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()


def manual_watcher(process: Callable[[], str], clock: Clock) -> Watcher:
    """Return a watcher of one process that checks the process only when its method `check` is called."""
    return Watcher([MonitoredComponent("kwok", process)], clock=clock, wall_clock=clock.wall)


def descriptions(outages: list[Outage]) -> list[str]:
    return [str(outage) for outage in outages]


def test_a_stopped_process_is_an_outage_from_the_last_good_check_to_the_next() -> None:
    clock, state = Clock(), [""]
    watcher = manual_watcher(lambda: state[0], clock)
    clock.now = 101
    watcher.check()
    assert watcher.overlapping(0) == []
    clock.now, state[0] = 102, STOPPED
    watcher.check()
    assert watcher.overlapping(101.5) == [Outage("kwok", STOPPED, 101)]
    clock.now, state[0] = 105, ""
    watcher.check()
    assert watcher.overlapping(101.5) == watcher.overlapping(105) == [Outage("kwok", STOPPED, 101, 105)]
    assert descriptions(watcher.overlapping(0)) == ["kwok is stopped (SIGSTOP), for 4 s"]
    assert watcher.overlapping(105.1) == []


def test_a_process_can_be_added_and_its_outage_is_none_of_the_cluster() -> None:
    clock, state = Clock(), {"kwok": "", "the operator": ""}
    watcher = manual_watcher(lambda: state["kwok"], clock)
    watcher.add_process("the operator", lambda: state["the operator"])
    clock.now = 101
    watcher.check()
    clock.now, state["the operator"] = 102, STOPPED
    watcher.check()
    clock.now, state = 105, {"kwok": DEAD, "the operator": ""}
    watcher.check()
    assert [outage.reason for outage in watcher.overlapping(0)] == [
        "a process was kept from running: the operator is stopped (SIGSTOP), for 4 s",
        "the cluster is not well: kwok does not run",
    ]


@pytest.mark.parametrize("part", ["process", "page"])
def test_a_failed_check_is_an_outage_and_checks_continue(part: str) -> None:
    errors = iter([RuntimeError("broken"), RuntimeError("broken")])

    def check() -> str:
        raise next(errors, None) or Recovered

    with run_watcher(MonitoredComponent("kwok", **{part: check}), silence=0.0) as watcher:
        [complaint] = wait_for(lambda: descriptions(watcher.overlapping(0)))
        assert "kwok cannot be watched: " in complaint
        wait_for(lambda: any("Recovered" in text for text in descriptions(watcher.overlapping(0))))


def test_the_outage_of_a_dead_process_is_final() -> None:
    clock, state = Clock(), [STOPPED]
    watcher = manual_watcher(lambda: state[0], clock)
    watcher.check()
    assert not watcher.overlapping(0)[0].final
    state[0] = DEAD
    watcher.check()
    assert watcher.overlapping(0)[0].final
    assert descriptions(watcher.overlapping(0)) == ["kwok does not run"]
    assert watcher.wait_until_over(60) == watcher.overlapping(0)  # returns at once


def test_the_suspension_of_the_suite_is_a_separate_outage() -> None:
    clock = Clock()
    watcher = manual_watcher(lambda: "", clock)
    clock.now += UNNOTICED_SECONDS
    assert watcher.settled(0) == []
    clock.now += 60
    assert watcher.settled(clock.now - 1) == [
        Outage(SUITE, "did not run itself", 100 + UNNOTICED_SECONDS, 160 + UNNOTICED_SECONDS)
    ]


def test_the_suspension_of_the_suite_during_a_check_is_an_outage() -> None:
    clock, pauses = Clock(), [60, 0]

    def check() -> str:
        clock.now += pauses.pop()
        return ""

    watcher = manual_watcher(check, clock)
    watcher.check()
    assert watcher.overlapping(0) == []
    watcher.check()  # the suite is stopped during this check
    pauses.append(0)
    watcher.check()
    assert watcher.overlapping(0) == [Outage(SUITE, "did not run itself", 100, 160)]


def test_a_slow_machine_has_a_longer_limit_for_delays() -> None:
    clock = Clock()
    watcher = Watcher([MonitoredComponent("kwok", lambda: "")], time_scale=2, clock=clock, wall_clock=clock.wall)
    clock.now += 2 * UNNOTICED_SECONDS
    assert watcher.settled(0) == []
    clock.now += 2 * UNNOTICED_SECONDS + 1
    assert len(watcher.settled(0)) == 1


def test_the_sleep_of_a_machine_is_an_outage() -> None:
    clock = Clock()
    watcher = manual_watcher(lambda: "", clock)
    clock.offset += 3600
    assert descriptions(watcher.settled(0)) == ["the wall clock jumped by +3600 s, for 0 s"]
    clock.now += 1
    assert watcher.settled(100.5) == []


def test_a_page_that_is_silent_for_long_is_an_outage_but_a_late_page_is_not() -> None:
    answers = iter(["timed out", ""])
    with run_watcher(MonitoredComponent("etcd", page=lambda: next(answers, "")), silence=30) as watcher:
        assert watcher.settled(0) == []
    with run_watcher(MonitoredComponent("etcd", page=lambda: "timed out")) as watcher:
        assert descriptions(watcher.settled(0)) == ["etcd does not answer: timed out"]


def test_a_verdict_waits_for_the_end_of_a_new_outage() -> None:
    is_healthy = threading.Event()
    is_healthy.set()
    with run_watcher(MonitoredComponent("etcd", page=lambda: "" if is_healthy.is_set() else "refused")) as watcher:
        assert watcher.settled(0) == []
        is_healthy.clear()
        assert watcher.overlapping(0) == []
        [outage] = watcher.settled(0)
        assert watcher.wait_until_over(0.05) == [outage]
        is_healthy.set()
        assert watcher.wait_until_over(10) == []
        assert [entry.end is not None for entry in watcher.overlapping(0)] == [True]


@pytest.mark.parametrize("component", [MonitoredComponent("a", lambda: ""), MonitoredComponent("a", page=lambda: "")])
def test_waiting_for_a_healthy_component_takes_no_time(component: MonitoredComponent) -> None:
    with run_watcher(component, silence=1000) as watcher:
        assert watcher.settled(0) == watcher.wait_until_over(1000) == []


def test_a_component_that_is_being_restarted_does_not_end_the_checks(state: StateRoot) -> None:
    this_process = Owner.this_process()
    record = ClusterRecord(name="one", uid="uid-of-one", creator=this_process, owner=this_process, ports=20000)
    state.add(record)
    cluster = Cluster(state, record)
    pids = cluster.monitor.log("etcd").parent.parent / "pids"
    pids.mkdir(parents=True)
    (pids / "etcd.pid").symlink_to(pids / "was-here-when-it-was-listed")
    watcher = watch(cluster)
    watcher.check()
    assert "etcd does not run" in descriptions(watcher.overlapping(0))


def test_health_closes_the_connections_that_it_has_kept() -> None:
    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        health = Health({Port.KWOK: server.server_port}, Path())
        assert health.find_problem(Port.KWOK) == health.find_problem(Port.KWOK) == ""
        [connection] = health._connections.values()
        health.close()
        assert connection.sock is None and not health._connections
        assert health.find_problem(Port.KWOK) == ""
        health.close()
        server.shutdown()
