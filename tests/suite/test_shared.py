"""Tests of several workers on one cluster: the first one starts the implementation, and the others attach to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from conformance.cluster.state import Owner
from conformance.cluster.suspension import STOPPED
from conformance.errors import HarnessError
from conformance.implementation import loading
from conformance.implementation.descriptor import Role
from conformance.run.workers import Workers
from conformance.suite.environment import GivenUp
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.session import other_workers, shared
from conformance.suite.session.shared import FIRST_WORKER, Attached, RunningImplementation
from conformance.suite.settings import RunSettings
from tests.cluster.waiting import wait_for

LIVING_IMPLEMENTATION = RunningImplementation(
    processes={"operator": Owner.of(os.getpid())}, logs={"operator": "/logs/operator.log"}
)
DEAD_IMPLEMENTATION = RunningImplementation(processes={"operator": Owner(os.getpid(), 1.0)})


class Line:
    """A channel to a worker that a test simulates: `sent` has the messages to the worker, `call` those from it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.call: Callable[[Any], None] = lambda message: None

    def setcallback(self, callback: Callable[[Any], None], endmarker: object) -> None:
        self.call = callback

    def send(self, item: object) -> None:
        self.sent.append(item)

    def receive(self) -> object:
        return self.sent.pop(0)


class Answers(Line):
    """A channel whose other end reports the running implementation when it is asked."""

    def __init__(self, *answers: RunningImplementation) -> None:
        super().__init__()
        self._answers = list(answers)

    def receive(self) -> object:
        assert self.sent.pop() == shared.QUESTION
        return shared.encoded(self._answers.pop(0))


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[tuple[Workers, dict[str, Line]]]:
    settings = RunSettings(run="r1", directory=str(tmp_path), implementation="reference")
    run_ledger = RunLedger(tmp_path / "ledger")
    pool = Workers(settings, run_ledger, lambda collected: None)
    lines = {name: Line() for name in (FIRST_WORKER, "gw1", "gw2")}
    for name, line in lines.items():
        pool.add(name, line, {})
    yield pool, lines
    run_ledger.close()


def test_an_early_question_is_answered_once_the_implementation_has_started(
    workers: tuple[Workers, dict[str, Line]],
) -> None:
    _, lines = workers
    lines["gw1"].call(shared.QUESTION)
    assert lines["gw1"].sent == []
    lines[FIRST_WORKER].call(shared.encoded(LIVING_IMPLEMENTATION))
    assert lines["gw1"].sent == [shared.encoded(LIVING_IMPLEMENTATION)]
    lines["gw2"].call(shared.QUESTION)
    assert lines["gw2"].sent == [shared.encoded(LIVING_IMPLEMENTATION)], "who asks later is answered at once"
    assert lines["gw1"].sent == [shared.encoded(LIVING_IMPLEMENTATION)], "and no worker gets it twice"


def test_no_worker_waits_for_a_lost_first_worker(workers: tuple[Workers, dict[str, Line]]) -> None:
    _, lines = workers
    lines["gw1"].call(shared.QUESTION)
    lines[FIRST_WORKER].call(None)
    with pytest.raises(GivenUp, match=r"^given up: the worker that started it has ended$"):
        shared.ask(_answered_line(lines["gw1"]))


def test_the_first_worker_ends_after_the_others(workers: tuple[Workers, dict[str, Line]]) -> None:
    _, lines = workers
    lines[FIRST_WORKER].call(other_workers.LAST_WORKER)
    lines["gw1"].call(None)
    assert lines[FIRST_WORKER].sent == []
    lines["gw2"].call(None)
    assert lines[FIRST_WORKER].sent == [other_workers.LAST_WORKER]


def test_an_attached_worker_sees_a_process_that_has_ended() -> None:
    attached = Attached(loading.load("reference"), None, Answers(LIVING_IMPLEMENTATION, DEAD_IMPLEMENTATION))
    assert attached.failures() == ()
    assert attached.logs() == {"operator": Path("/logs/operator.log")}
    attached.start()
    assert [str(death) for death in attached.failures()] == ["the operator has ended by itself"]
    assert len(attached.failures()) == 1, "it is noticed once"


def test_an_attached_worker_sees_a_process_that_is_stopped() -> None:
    with psutil.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as process:
        running = RunningImplementation(processes={"gang-scheduler-main": Owner.of(process.pid)})
        attached = Attached(loading.load("reference"), None, Answers(running))
        assert attached.find_suspension(Role.GANG_SCHEDULER) == ""
        process.suspend()
        wait_for(lambda: attached.find_suspension(Role.GANG_SCHEDULER) == STOPPED)
        assert attached.find_suspension(Role.OPERATOR) == ""
        process.kill()


def test_an_attached_worker_touches_nothing() -> None:
    attached = Attached(loading.load("reference"), None, Answers(LIVING_IMPLEMENTATION))
    attached.operators.reset()  # as after each scene
    with pytest.raises(HarnessError, match=r"controls the operator beside others: set `exclusive` of the scene"):
        attached.controls(Role.OPERATOR)
    with pytest.raises(HarnessError, match=r"changes the implementation \(without_webhooks\) beside others"):
        attached.installer.without_webhooks()


def _answered_line(line: Line) -> Line:
    """Return the channel with `send` disabled, because the answer has already arrived."""
    line.send = lambda item: None  # type: ignore[method-assign]
    return line
