"""Tests of the rule for updates that count as stuck."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reference_impl.api.coherent import RollingUpdate
from reference_impl.api.models import CliqueUpdateProgress, Condition, PodCliqueStatus
from reference_impl.control import update_watch
from reference_impl.control.update_watch import UpdateWatch
from reference_impl.plan import update_condition
from reference_impl.plan.update_condition import component_condition, progress_deadline, set_condition

NOW = "2026-01-01T00:00:00Z"


def clique(running: bool = True, condition_status: str = "") -> Any:
    progress = CliqueUpdateProgress(update_started_at=NOW, update_ended_at=None if running else NOW)
    status = PodCliqueStatus(update_progress=progress)
    if condition_status:
        status.conditions = [
            Condition(type=update_condition.CONDITION, status=condition_status, last_transition_time=NOW)
        ]
    return SimpleNamespace(metadata=SimpleNamespace(key=("n", "c")), status=status)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    present = [100.0]
    monkeypatch.setattr(update_watch.time, "monotonic", lambda: present[0])
    return present


def test_an_update_without_progress_is_stuck_until_it_progresses(clock: list[float]) -> None:
    watch, item = UpdateWatch(), clique()
    assert watch.seconds_until_stuck(item, (1, 0), 10) == 10
    clock[0] += 4
    assert watch.seconds_until_stuck(item, (1, 0), 10) == 6
    clock[0] += 60
    assert watch.seconds_until_stuck(item, (1, 0), 10) == 0
    assert watch.seconds_until_stuck(item, (1, 1), 10) == 10


def test_nothing_is_stuck_without_a_deadline_or_an_update(clock: list[float]) -> None:
    watch = UpdateWatch()
    assert watch.seconds_until_stuck(clique(), (1,), None) is None
    assert watch.seconds_until_stuck(clique(running=False), (1,), 10) is None


def test_a_restarted_operator_keeps_stuck_updates(clock: list[float]) -> None:
    assert UpdateWatch().seconds_until_stuck(clique(condition_status="Unknown"), (1,), 10) == 0
    assert UpdateWatch().seconds_until_stuck(clique(condition_status="True"), (1,), 10) == 10


def test_conditions_report_the_state_of_the_update() -> None:
    assert [
        component_condition(clique(running), stuck, NOW).status for running, stuck in ((False, False), (True, False))
    ] == [
        "False",
        "True",
    ]
    assert component_condition(clique(), True, NOW).reason == "ProgressDeadlineExceeded"
    parts = [clique(condition_status="True"), clique(condition_status="Unknown")]
    assert set_condition(parts, NOW, in_progress=True).message.startswith("1/2 ")
    assert set_condition(parts, NOW, in_progress=False).status == "False"
    assert set_condition(parts[:1], NOW, in_progress=True).status == "True"


def test_deadlines_are_read_in_seconds() -> None:
    assert (
        progress_deadline(None),
        progress_deadline(RollingUpdate()),
        progress_deadline(RollingUpdate(progress_deadline="1m30s")),
    ) == (
        None,
        None,
        90.0,
    )
