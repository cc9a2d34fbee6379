"""Tests of the growth of quantities with the number of pods: fits to sample results of several sizes."""

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

POD_COUNTS = (1000, 5000, 10000)


def result_at_size(pods: int, **values: Any) -> dict[str, Any]:
    """Return a result in which memory is 100 MiB plus 10 KiB per pod, and times grow with pods^1.2."""
    document = result(**{"ready": pods**1.2 / 100, "writes": 5 * pods, **values})
    document["scenario"] |= {"pods": pods, "name": f"S{pods}"}
    for phase in document["phases"]:
        phase["processes"] = {"operator": {"cpuSeconds": pods / 200, "memoryMiB": 100 + pods * 10 / 1024}}
        phase["storage"]["etcdMiB"] = pods**2 / 1e4
    return document


def quantity_of(name: str, *documents: dict[str, Any]) -> Quantity:
    [match] = [quantity for quantity in growth.quantities(documents) if quantity.name == name]
    return match


def test_times_grow_by_a_power_and_memory_grows_linearly() -> None:
    runs = [result_at_size(pods) for pods in POD_COUNTS]
    ready_time = quantity_of("deploy: pods-ready", *runs)
    assert (ready_time.fit, ready_time.law, ready_time.predict(100_000)) == (
        Fit.POWER,
        "pods^1.20",
        pytest.approx(100_000**1.2 / 100),
    )
    memory = quantity_of("memory of operator", *runs)
    assert (memory.law, memory.predict(100_000)) == ("100 MiB + 10.0 KiB a pod", pytest.approx(100 + 1_000_000 / 1024))
    assert quantity_of("deploy: CPU of operator", *runs).law == "pods^1.00"


def test_the_maximum_of_memory_and_the_sum_of_logs_count() -> None:
    runs = [result_at_size(pods) for pods in POD_COUNTS]
    for run in runs:
        run["phases"][1]["processes"]["operator"]["memoryMiB"] *= 2
    assert quantity_of("memory of operator", *runs).values[1000] == pytest.approx(2 * (100 + 10_000 / 1024))
    assert quantity_of("audit log of the phases", *runs).values == dict.fromkeys(POD_COUNTS, 20.0)


def test_superlinear_growth_of_storage_is_reported() -> None:
    assert quantity_of("database of etcd", *(result_at_size(pods) for pods in POD_COUNTS)).law == "pods^2.00"


def test_the_median_of_the_complete_runs_of_each_size_counts() -> None:
    mixed_results = [
        result_at_size(1000, ready=900.0),
        result_at_size(1000, ready=10.0),
        {**result_at_size(1000, ready=1.0), "complete": False},
    ]
    quantity = quantity_of(
        "deploy: pods-ready", *mixed_results, result_at_size(1000, ready=20.0), result_at_size(5000, ready=100.0)
    )
    assert quantity.values == {1000: 20.0, 5000: 100.0}


def test_missing_and_negligible_quantities_are_omitted() -> None:
    old_result = result_at_size(1000)
    for phase in old_result["phases"]:
        del phase["storage"]
    names = {quantity.name for quantity in growth.quantities([old_result, result_at_size(5000)])}
    assert "deploy: pods-ready" in names and "database of etcd" not in names
    small_results = [result_at_size(pods) for pods in POD_COUNTS]
    for run in small_results:
        run["phases"][0]["processes"]["operator"]["cpuSeconds"] = 0.1
    assert "deploy: CPU of operator" not in {quantity.name for quantity in growth.quantities(small_results)}


def change_cpu_model(document: dict[str, Any]) -> None:
    document["environment"]["cpuModel"] = "another"


@pytest.mark.parametrize(
    ("change", "sizes", "message"),
    [(change_cpu_model, POD_COUNTS, "on 2 × a model and"), (lambda run: None, (1000, 1000), "two sizes, there are 1")],
)
def test_results_that_cannot_be_compared_are_refused(
    change: Callable[[Any], None], sizes: tuple[int, ...], message: str
) -> None:
    runs = [result_at_size(pods) for pods in sizes]
    change(runs[0])
    with pytest.raises(UsageError, match=message):
        growth.quantities(runs)


def test_the_command_prints_a_table_and_names_disturbed_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for pods in POD_COUNTS:
        document = result_at_size(pods)
        document["phases"][0]["machine"]["foreignShare"] = 0.5 if pods == 5000 else 0.0
        results.write(document, tmp_path / f"{pods}.json")
    assert cli.run(lambda: cli.app(["scale", "growth", str(tmp_path), "--pods", "50000"], standalone_mode=False)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "|  | 1,000 pods | 5,000 pods | 10,000 pods | grows with | at 50,000 |"
    assert "| deploy: pods-ready | 39.8 s | 275 s | 631 s | pods^1.20 | 4,353 s |" in lines
    assert lines[-1] == ("- S5000: times and CPU are not to be relied on: deploy: other processes used 50% of the CPU")


def test_a_folder_without_results_is_reported_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(lambda: cli.app(["scale", "growth", str(tmp_path)], standalone_mode=False)) == 4
    assert "has no result" in capsys.readouterr().err
