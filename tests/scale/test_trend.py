"""Tests of trends of stored results over time and over the number of pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance import cli
from conformance.scale import results, trend
from conformance.scale.upstream import PublishedRun
from tests.scale.sample_results import result


def result_of_day(day: int, pods: int = 1000, **values: Any) -> dict[str, Any]:
    document = result(**values)
    document["startedAt"] = f"2026-01-{day:02}T00:00:00+00:00"
    document["scenario"] |= {"pods": pods, "name": f"S{pods}"}
    return document


def test_a_series_has_one_implementation_on_one_kind_of_machine() -> None:
    other_machine = result_of_day(2, ready=9)
    other_machine["environment"]["cpuModel"] = "another"
    stopped_result = {**result_of_day(4), "complete": False}
    series = trend.series(
        [result_of_day(3, ready=30), result_of_day(1, ready=20), other_machine, stopped_result], "deploy/pods-ready"
    )
    [lines] = series.values()
    assert [[point.value for point in points] for points in lines.values()] == [[20, 30], [9]]


def test_growth_has_an_exponent() -> None:
    runs = [
        result_of_day(day, pods, ready=pods**1.1 / 50) for day, pods in enumerate((1000, 2000, 5000, 10000), start=1)
    ]
    [growth_fit] = trend.growth([*runs, result_of_day(9, ready=900)], "deploy/pods-ready").values()
    assert list(growth_fit.sizes) == [1000, 2000, 5000, 10000]
    [exact_fit] = trend.growth(runs, "deploy/pods-ready").values()
    assert exact_fit.exponent == pytest.approx(1.1, abs=0.001)
    assert trend.growth(runs[:1], "deploy/pods-ready") == {}


def test_the_page_has_a_picture_for_each_scenario_and_one_for_growth() -> None:
    published_runs = [
        PublishedRun("ScaleTest_1000", "r", "c", f"2026-05-{day}", 77.0, {"deploy/pods-ready": 47.0}) for day in "12"
    ]
    text = trend.page([result_of_day(1), result_of_day(2), result_of_day(3, 2000)], published_runs, "deploy/pods-ready")
    assert text.count("<svg") == 3 and "<h2>ScaleTest_1000, published by Grove</h2>" in text
    assert "<li>an operator, 2 × a model, 2026-01-03: 20 seconds</li>" in text, "one run is no trend"
    assert "No run has it" in trend.page([result_of_day(1)], published_runs, "deploy/none")


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day, pods in ((1, 1000), (2, 2000)):
        results.write(result_of_day(day, pods, ready=pods / 50), tmp_path / f"{day}.json")
    page = tmp_path / "out" / "trend.html"
    command = ["scale", "trend", str(tmp_path), "--output", str(page)]
    assert cli.run(lambda: cli.app(command, standalone_mode=False)) == 0
    assert "to the power of 1.00" in capsys.readouterr().out and "<svg" in page.read_text()


def run_trend(*arguments: str) -> int:
    return cli.run(lambda: cli.app(["scale", "trend", *arguments], standalone_mode=False))


def test_the_folder_of_a_comparison_is_read_and_old_files_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("round-01-base", "round-01-head", "warm-up-01-base"):
        results.write(result_of_day(1), tmp_path / f"{name}.json")
    for name in ("plan", "comparison", "old"):
        (tmp_path / f"{name}.json").write_text('{"apiVersion": "conformance.grove.io/v1"}')
    assert run_trend(str(tmp_path), "--output", str(tmp_path / "t.html")) == 0
    errors = capsys.readouterr().err
    assert (
        "left out: " in errors
        and "old.json" in errors
        and "plan.json" not in errors
        and "comparison.json" not in errors
    )
    assert (tmp_path / "t.html").read_text().count("<svg") == 1
    assert run_trend(str(tmp_path / "old.json")) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((), "nothing to show"), (("{}", "--metric", "deploy/pods-raedy"), "deploy/pods-ready")],
)
def test_mistakes_are_reported_in_one_line(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results.write(result_of_day(1), tmp_path / "1.json")
    assert run_trend(*(argument.format(tmp_path) for argument in arguments)) == 4
    assert message in capsys.readouterr().err


def test_the_floor_may_be_written_with_an_x(tmp_path: Path) -> None:
    results.write(result_of_day(1), tmp_path / "1.json")
    page = tmp_path / "t.html"
    assert run_trend(str(tmp_path), "--metric", "deploy/pods-readyxfloor", "--output", str(page)) == 0
    assert "deploy/pods-ready×floor" in page.read_text()
