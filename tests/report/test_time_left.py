"""Tests that the remaining time of a run is computed from the costs of its scenes and the durations of finished
scenes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from test_model import ended, started

from conformance.report.progress import Progress
from conformance.report.time_left import TimeLeft, words
from conformance.suite.outcomes.ledger import Phase
from conformance.suite.outcomes.ledger_file import RunLedger

SCENES = {"a1": "a", "a2": "a", "b": "b", "c": "c"}
COSTS = {"a": 10.0, "b": 10.0, "c": 80.0}


def test_a_run_at_the_usual_pace_takes_its_remaining_costs() -> None:
    time_left = TimeLeft(SCENES, COSTS)
    time_left.end_test("b")
    assert time_left.seconds(10.0) == pytest.approx(90.0)
    time_left.end_test("a1")
    assert time_left.seconds(20.0) == pytest.approx(80.0)
    time_left.end_test("a2")
    assert time_left.seconds(20.0) == pytest.approx(80.0), "a scene is played once for all of its tests"
    time_left.end_test("c")
    assert time_left.seconds(200.0) == 0.0


def test_a_slow_machine_takes_longer_the_longer_it_was_measured() -> None:
    time_left = TimeLeft({"a": "a", "b": "b"}, {"a": 600.0, "b": 600.0})
    time_left.end_test("a")
    assert time_left.seconds(1800.0) == pytest.approx(600.0 * 1860 / 660)


def test_a_scene_that_is_late_lasts_as_long_again() -> None:
    time_left = TimeLeft({"a": "a", "b": "b"}, {"a": 10.0, "b": 10.0})
    time_left.end_test("a")
    time_left.start_test("b", 10.0)
    assert [round(time_left.seconds(now) or 0.0) for now in (10.0, 20.0, 50.0, 110.0)] == [10, 0, 30, 90]
    time_left.end_test("b")
    assert time_left.seconds(120.0) == 0.0


def test_the_played_part_of_a_scene_is_subtracted_up_to_its_cost() -> None:
    time_left = TimeLeft(SCENES, COSTS)
    time_left.start_test("a1", 0.0)
    time_left.start_test("a2", 7.0)
    assert time_left.seconds(8.0) == pytest.approx(92.0)
    assert time_left.seconds(100.0) == pytest.approx(90.0 + 90.0 * 160 / 70)


def test_lone_scenes_keep_all_workers_busy() -> None:
    time_left = TimeLeft(SCENES, COSTS, exclusive={"c"}, workers=2)
    time_left.end_test("a1")
    time_left.end_test("b")
    assert time_left.seconds(10.0) == pytest.approx(80.0)


def test_nothing_is_printed_before_anything_is_known() -> None:
    time_left = TimeLeft(SCENES, {"a": 1.0, "b": 10.0, "c": 89.0})
    assert time_left.seconds(1.0) is None
    time_left.end_test("a1")
    assert time_left.seconds(60.0) is None
    time_left.end_test("unknown")
    time_left.end_test("b")
    assert time_left.seconds(60.0) is not None
    assert TimeLeft({}, {}).seconds(1.0) is None


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(None, ""), (0.0, "less than a minute left"), (61.0, "about 2 min left"), (300.0, "about 5 min left")],
)
def test_the_remaining_time_is_rounded_to_minutes(seconds: float | None, expected: str) -> None:
    assert words(seconds) == expected


def test_the_line_of_a_run_counts_done_failed_and_remaining_tests(tmp_path: Path) -> None:
    output = StringIO()
    time_left = TimeLeft({"t": "T", "u": "U"}, {"T": 100.0, "U": 1000.0})
    with (
        RunLedger(tmp_path) as run_ledger,
        Progress(run_ledger, 2, Console(file=output, width=200), 0.0, interval=0.0, time_left=time_left),
    ):
        run_ledger.write(started("t", "AA-001"))
        run_ledger.write(ended("t", "passed"))
        until(lambda: bool(re.search(r"\] 1 of 2 tests, 0 failed, about \d+ min left\n", output.getvalue())), output)


def test_the_start_of_a_cluster_is_not_part_of_a_scene(tmp_path: Path) -> None:
    output = StringIO()
    time_left = TimeLeft({"t": "T", "u": "U"}, {"T": 0.001, "U": 0.001})
    with (
        RunLedger(tmp_path) as run_ledger,
        Progress(run_ledger, 2, Console(file=output, width=200), 0.0, interval=0.0, time_left=time_left),
    ):
        run_ledger.write(started("t", "AA-001"))
        run_ledger.write(Phase(wall=1.0, worker="gw0", phase="bringing the cluster up"))
        until(lambda: output.getvalue().count("gw0: bringing the cluster up") > 1, output)
        assert " left" not in output.getvalue(), "nothing was played yet"
        run_ledger.write(Phase(wall=2.0, worker="gw0", phase="ready"))
        until(lambda: "less than a minute left" in output.getvalue(), output)


def until(condition: Callable[[], bool], output: StringIO) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, output.getvalue()
