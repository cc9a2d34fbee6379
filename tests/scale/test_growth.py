"""Tests of how quantities grow with the number of pods: fits over sample results of several sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance import cli
from conformance.errors import UsageError
from conformance.scale import growth, results
from conformance.scale.growth import Fit, Quantity
from tests.scale.sample_results import result

SIZES = (1000, 5000, 10000)


def result_at_size(pods: int, **values: Any) -> dict[str, Any]:
    """Return a result with a memory of 100 MiB plus 10 KiB per pod, and a time that grows with pods^1.2."""
    document = result(**{"ready": pods**1.2 / 100, "writes": 5 * pods, **values})
    document["scenario"] |= {"pods": pods, "name": f"S{pods}"}
    for phase in document["phases"]:
        phase["processes"] = {"operator": {"cpuSeconds": pods / 200, "memoryMiB": 100 + pods * 10 / 1024}}
        phase["storage"]["etcdMiB"] = pods**2 / 1e4
    return document


def of(name: str, *documents: dict[str, Any]) -> Quantity:
    [match] = [quantity for quantity in growth.quantities(documents) if quantity.name == name]
    return match


def test_a_time_has_an_exponent_and_memory_a_line() -> None:
    runs = [result_at_size(pods) for pods in SIZES]
    ready = of("deploy: pods-ready", *runs)
    assert (ready.fit, ready.law, ready.at(100_000)) == (Fit.POWER, "pods^1.20", pytest.approx(100_000**1.2 / 100))
    memory = of("memory of operator", *runs)
    assert (memory.law, memory.at(100_000)) == ("100 MiB + 10.0 KiB a pod", pytest.approx(100 + 1_000_000 / 1024))
    assert of("deploy: CPU of operator", *runs).law == "pods^1.00"


def test_memory_counts_by_its_maximum_and_logs_by_their_sum() -> None:
    runs = [result_at_size(pods) for pods in SIZES]
    for run in runs:
        run["phases"][1]["processes"]["operator"]["memoryMiB"] *= 2
    assert of("memory of operator", *runs).values[1000] == pytest.approx(2 * (100 + 10_000 / 1024))
    assert of("audit log of the phases", *runs).values == dict.fromkeys(SIZES, 20.0)


def test_storage_that_grows_faster_than_a_line_is_reported() -> None:
    assert of("database of etcd", *(result_at_size(pods) for pods in SIZES)).law == "pods^2.00"


def test_the_median_of_the_complete_runs_of_a_size_counts() -> None:
    mixed = [
        result_at_size(1000, ready=900.0),
        result_at_size(1000, ready=10.0),
        {**result_at_size(1000, ready=1.0), "complete": False},
    ]
    quantity = of("deploy: pods-ready", *mixed, result_at_size(1000, ready=20.0), result_at_size(5000, ready=100.0))
    assert quantity.values == {1000: 20.0, 5000: 100.0}


def test_what_is_missing_somewhere_or_next_to_nothing_is_left_out() -> None:
    old = result_at_size(1000)
    for phase in old["phases"]:
        del phase["storage"]
    names = {quantity.name for quantity in growth.quantities([old, result_at_size(5000)])}
    assert "deploy: pods-ready" in names and "database of etcd" not in names
    small = [result_at_size(pods) for pods in SIZES]
    for run in small:
        run["phases"][0]["processes"]["operator"]["cpuSeconds"] = 0.1
    assert "deploy: CPU of operator" not in {quantity.name for quantity in growth.quantities(small)}


def another(document: dict[str, Any]) -> None:
    document["environment"]["cpuModel"] = "another"


@pytest.mark.parametrize(
    ("change", "sizes", "message"),
    [(another, SIZES, "on 2 × a model and"), (lambda run: None, (1000, 1000), "two sizes, there are 1")],
)
def test_what_cannot_be_compared_is_refused(
    change: Callable[[Any], None], sizes: tuple[int, ...], message: str
) -> None:
    runs = [result_at_size(pods) for pods in sizes]
    change(runs[0])
    with pytest.raises(UsageError, match=message):
        growth.quantities(runs)


def test_the_command_prints_a_table_and_says_what_is_disturbed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for pods in SIZES:
        document = result_at_size(pods)
        document["phases"][0]["machine"]["foreignShare"] = 0.5 if pods == 5000 else 0.0
        results.write(document, tmp_path / f"{pods}.json")
    assert cli.run(lambda: cli.app(["scale", "growth", str(tmp_path), "--pods", "50000"], standalone_mode=False)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "|  | 1,000 pods | 5,000 pods | 10,000 pods | grows with | at 50,000 |"
    assert "| deploy: pods-ready | 39.8 s | 275 s | 631 s | pods^1.20 | 4,353 s |" in lines
    assert lines[-1] == ("- S5000: times and CPU are not to be relied on: deploy: other processes used 50% of the CPU")


def test_a_folder_without_results_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(lambda: cli.app(["scale", "growth", str(tmp_path)], standalone_mode=False)) == 4
    assert "has no result" in capsys.readouterr().err
