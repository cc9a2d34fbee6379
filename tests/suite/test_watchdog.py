"""Tests that a run in which nothing happens any more is ended with a harness error, whichever process hangs."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from faked import Faked

from conformance.cluster import pace
from conformance.implementation import installation
from conformance.run import watchdog

HANGING_TESTS = """
    import contextlib

    @requirements("AA-001")
    def test_one(case):
        case.expect("AA-001", "x", 1, {actual})

    @requirements("AA-002")
    def test_two(case):
        {hang}
    """
SLEEPS = "time.sleep(1000)"
STOPS = "os.kill(os.getpid(), signal.SIGSTOP)"
IGNORES = """
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("workers", "hang", "actual"), [(1, SLEEPS, 1), (1, STOPS, 2), (0, SLEEPS, 2), (0, IGNORES, 1), (0, IGNORES, 2)]
)
def test_a_run_that_hangs_is_ended_without_a_verdict(faked: Faked, workers: int, hang: str, actual: int) -> None:
    faked.write(HANGING_TESTS.format(actual=actual, hang=hang))
    result = faked.run(workers=workers, limits=[12, 12] if workers else [3, 3])
    assert result.exit == (3 if actual == 1 else 1), result.err
    assert result.outcomes == {"AA-001": "passed" if actual == 1 else "failed", "AA-002": "harness-error"}
    [fault] = [fault for fault in result.report["verdict"]["harnessErrors"] if "nothing has happened for" in fault]
    assert fault in result.out
    log = (result.folder / "pytest.log").read_text()
    assert "stacks of the controlling process" in log
    assert "in test_two" in log or hang == STOPS


def test_workers_wait_longer_for_the_cluster_itself_with_a_larger_time_scale(faked: Faked) -> None:
    """CRDs that an API server establishes late are an example."""
    faked.write(
        """
        from conformance.cluster import pace

        @requirements("AA-001")
        def test_one(case):
            case.expect("AA-001", "x", True, pace.patience(30) >= 120)
        """,
        ids=1,
    )
    assert faked.run(workers=1, time_scale=4).outcomes == {"AA-001": "passed"}


async def test_crds_may_be_served_later_with_a_larger_time_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "factor", lambda: 1.0)
    monkeypatch.setattr(pace, "_time_scale", 5.0)
    monkeypatch.setattr(installation, "TIMEOUT_SECONDS", 0.4)
    start = time.monotonic()

    async def served() -> bool:
        return time.monotonic() > start + 1

    await installation.wait_until(served, "the API server does not serve a CRD")


def test_limits_grow_with_the_time_scale_and_time_in_which_nothing_runs_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "factor", lambda: 1.0)
    monkeypatch.setattr(pace, "_time_scale", 1.0)
    now = [0.0, 1000.0, 1001.0, 1002.0, 1003.0, 1004.0, 1005.0]
    for scale, looks in ((1.0, 3), (0.5, 3), (2.0, 5)):
        pace.stretch(scale)
        times = iter(now)
        monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=lambda times=times: next(times)))
        dog: Any = object.__new__(watchdog.Watchdog)
        waited: list[float] = []
        dog._ended = SimpleNamespace(wait=lambda seconds, waited=waited: waited.append(seconds))
        assert dog._is_idle_for(3.5 if looks == 3 else 3.0)
        assert len(waited) == looks, scale
