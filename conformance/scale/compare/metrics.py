"""The metrics of a result: times, which are tested or described, and counts."""

from __future__ import annotations

from collections import Counter

from conformance.documents import suggestion
from conformance.errors import UsageError
from conformance.scale.requests import NOT_COUNTED
from conformance.scale.results import Result

PRIMARY_MARKER = "pods-ready"
"""The marker that is tested unless another metric is requested, in the first phase that has it."""
COUNTS = ("writes", "reads", "refused", "conflicts", "cpu-ms")
GATED_COUNT = "writes"
"""The count to which a threshold applies."""


def times(result: Result) -> dict[str, float]:
    """Return the measured times: `phase/marker` in seconds, and `phase/marker×floor` as multiples of the raw floor."""
    seconds: dict[str, float] = {}
    for phase in result["phases"]:
        name = phase["name"]
        seconds |= {f"{name}/{marker}": value for marker, value in phase["markers"].items() if value}
        seconds |= {f"{name}/{marker}×floor": value for marker, value in phase.get("timesFloor", {}).items() if value}
        for step, percentiles in phase["perPod"].items():
            seconds |= {
                f"{name}/{step}-{rank}": value for rank, value in percentiles.items() if value and rank != "max"
            }
        seconds |= {
            f"{name}/cpu-{process}": cost["cpuSeconds"]
            for process, cost in phase["processes"].items()
            if cost["cpuSeconds"]
        }
    return seconds


def counts(result: Result) -> dict[str, float]:
    """Return the counts of a whole run, per pod. `cpu-ms` is the CPU time of the judged programs. It depends on the
    load of the machine, but far less than wall-clock times do."""
    pods = max(result["scenario"]["pods"], 1)
    phases, programs = result["phases"], result["implementation"]["programs"]
    cpu_seconds = [
        phase["processes"][name]["cpuSeconds"] for phase in phases for name in programs if name in phase["processes"]
    ]
    sums = {
        "writes": sum(phase["writes"]["total"] for phase in phases),
        "reads": sum(phase["reads"]["total"] for phase in phases),
        "refused": sum(phase["writes"]["refused"] + phase["reads"]["refused"] for phase in phases),
        "conflicts": sum(phase["writes"]["conflicts"] for phase in phases),
        "cpu-ms": 1000 * sum(cpu_seconds),
    }
    return {name: total / pods for name, total in sums.items()}


def writes(result: Result) -> dict[str, float]:
    """Map `phase: verb resource` to the number of writes per pod, of all programs whose writes are counted."""
    totals: Counter[str] = Counter()
    for phase in result["phases"]:
        for row in phase["writes"]["rows"]:
            if row["program"] not in NOT_COUNTED:
                totals[f"{phase['name']}: {row['verb']} {row['resource']}"] += row["count"]
    pods = max(result["scenario"]["pods"], 1)
    return {name: count / pods for name, count in totals.items()}


def tested_metric(result: Result, requested: str) -> str:
    """Return the tested metric: the requested metric, or pods-ready of the first phase that has it. Raises UsageError
    if no run has the metric."""
    names = times(result)
    if requested:
        if requested not in names:
            raise UsageError(
                f'no run has the metric "{requested}"', where="--metric", hint=suggestion(requested, names)
            )
        return requested
    default_metric = next((name for name in names if name.endswith(f"/{PRIMARY_MARKER}")), None)
    if default_metric is None:
        raise UsageError(
            f"no phase has the marker {PRIMARY_MARKER}", hint=f"name a metric with --metric: {suggestion('', names)}"
        )
    return default_metric
