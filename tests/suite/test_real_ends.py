"""Tests that a run on a real cluster leaves no process and no cluster, however it ends."""

from __future__ import annotations

import os
import re
import signal

import psutil
import pytest
from real import WAITING, RealRun, wait_for

pytestmark = pytest.mark.cluster

LATER_TEST = """
    @requirements("AA-003")
    def test_two_more(case):
        case.nodes("dgx-h100", 1)
        case.expect("AA-003", "x", 1, 1)
"""


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.thorough), 1])
def test_control_c(real_run: RealRun, workers: int) -> None:
    real_run.start(workers=workers)
    assert real_run.process is not None
    real_run.process.send_signal(signal.SIGINT)
    result = real_run.end()
    assert result.exit == 2, result.err
    assert result.outcomes == {"AA-001": "passed", "AA-002": "not-run"}
    assert real_run.remains() == []


@pytest.mark.thorough
def test_a_killed_worker(real_run: RealRun) -> None:
    real_run.start(workers=1)
    os.kill(real_run.worker(), signal.SIGKILL)
    result = real_run.end()
    assert result.exit == 3, result.err
    assert result.outcomes == {"AA-001": "passed", "AA-002": "harness-error"}
    assert "died during test_fake.py::test_two" in result.out
    assert real_run.remains() == []


def test_a_killed_suite(real_run: RealRun) -> None:
    """The worker notices that the controlling process is gone, and cleans up."""
    real_run.start(workers=1)
    assert real_run.process is not None
    real_run.process.kill()
    real_run.end()
    wait_for(lambda: not real_run.remains(), 120)
    assert real_run.remains() == []


@pytest.mark.thorough
def test_a_killed_api_server_is_not_the_implementations_fault(real_run: RealRun) -> None:
    real_run.start(workers=1)
    real_run.component("kube-apiserver").kill()
    result = real_run.end()
    assert result.exit == 3, result.out
    assert result.outcomes["AA-002"] == "harness-error"
    assert re.search("the cluster is not well: .*apiserver", result.out)
    assert real_run.remains() == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["kwok", "etcd"])
def test_a_hang_that_passes_is_not_the_implementations_fault(real_run: RealRun, name: str) -> None:
    """The affected wait ends at once and without a verdict. The next test starts when the hang is over."""
    real_run.write(WAITING + LATER_TEST, ids=3)
    real_run.start(workers=1)
    hung = real_run.component(name)
    hung.suspend()
    wait_for((real_run.faked.folder / "run" / "bundles").exists, 15)
    hung.resume()
    result = real_run.end()
    assert result.exit == 3, result.out + result.err
    assert result.outcomes == {"AA-001": "passed", "AA-002": "harness-error", "AA-003": "passed"}
    assert re.search(rf"a process was kept from running: {name}\S* is stopped", result.out)
    assert next(t["seconds"]["call"] for t in result.report["run"]["tests"] if t["outcome"] == "harness-error") < 10
    assert real_run.remains() == []


@pytest.mark.thorough
def test_a_suite_that_was_stopped_judges_nothing_by_the_time_that_it_missed(real_run: RealRun) -> None:
    real_run.write(WAITING + LATER_TEST, ids=3)
    real_run.start(workers=1)
    worker = psutil.Process(real_run.worker())
    worker.suspend()
    wait_for(lambda: False, 25)  # longer than the timeout of the test's wait
    worker.resume()
    result = real_run.end()
    assert result.exit == 3, result.out + result.err
    assert result.outcomes == {"AA-001": "passed", "AA-002": "harness-error", "AA-003": "passed"}
    assert "the cluster is not well: the suite did not run itself, for 2" in result.out
    assert real_run.remains() == []


BREAKING_TESTS = """
    import psutil
    import pytest

    def broken(case, id, name):
        driver = case.roles._driver.cluster
        for file in driver.directory.rglob(f"{name}*.pid"):
            psutil.Process(int(file.read_text())).kill()
        case.until(id, "what never comes", lambda view: None, timeout=300)

    @requirements("AA-001")
    def test_one(case):
        broken(case, "AA-001", "etcd")

    @requirements("AA-002")
    def test_two(case):
        case.nodes("dgx-h100", 1)
        case.expect("AA-002", "x", 1, 1)

    @requirements("AA-003")
    def test_three(case):
        broken(case, "AA-003", "kwok")

    @pytest.mark.parametrize("number", range(20))
    @requirements("AA-004")
    def test_later(case, number):
        case.expect("AA-004", "x", 1, 1)
"""


def test_a_broken_cluster_is_replaced_and_the_second_one_is_not(real_run: RealRun) -> None:
    real_run.write(BREAKING_TESTS, ids=4)
    result = real_run.run()
    assert result.exit == 3, result.out + result.err
    harness = dict.fromkeys(("AA-001", "AA-003", "AA-004"), "harness-error")
    assert result.outcomes == {**harness, "AA-002": "passed"}
    assert "the cluster is not well: etcd does not run" in result.out
    given_up = "given up: the cluster is not well: kwok-controller does not run; 2 clusters broke"
    assert result.err.count("given up") == result.err.count(given_up) == 1
    assert all(t["seconds"].get("call", 0) < 10 for t in result.report["run"]["tests"])
    assert result.err.count("test_later") <= 2, result.err
    assert real_run.remains() == []
