"""The tables of one result on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from conformance.scale.results import Result

MAX_ROWS = 14
"""Maximum number of rows in a table of requests."""


def show(result: Result, console: Console) -> None:
    """Print the tables of a result."""
    _times(result, console)
    for phase in result["phases"]:
        for kind in ("writes", "reads"):
            _requests(phase["name"], kind, phase[kind], console)
    _processes(result, console)


def _times(result: Result, console: Console) -> None:
    scenario = result["scenario"]
    state = "" if result["complete"] else ", not complete"
    table = Table(
        "phase",
        "marker",
        "seconds",
        "× floor",
        title=f"{scenario['name']}: {scenario['pods']} pods, {scenario['nodes']} nodes, {result['binder']}{state}",
    )
    for side in ("before", "after"):
        for name, seconds in ((result["floors"][side] or {}).get("markers") or {}).items():
            table.add_row(f"raw floor {side}", name, f"{seconds:.2f}", "")
    for name, seconds in ((result["floors"].get("write") or {}).get("markers") or {}).items():
        table.add_row("write floor", name, f"{seconds:.2f}", "")
    for phase in result["phases"]:
        ratios = phase.get("timesFloor", {})
        write_ratios = phase.get("timesWriteFloor", {})
        for name, seconds in phase["markers"].items():
            ratio = f"{ratios[name]:.2f}" if name in ratios else ""
            ratio += f" ({write_ratios[name]:.2f} × write floor)" if name in write_ratios else ""
            table.add_row(phase["name"], name, "-" if seconds is None else f"{seconds:.2f}", ratio)
        for state, count in phase.get("replicas", {}).items():
            table.add_row(phase["name"], f"{state} replicas", str(count), "")
    console.print(table)


def _requests(phase: str, kind: str, requests: Result, console: Console) -> None:
    table = Table(
        "program",
        "verb",
        "resource",
        "count",
        "per pod",
        title=f"API {kind}, {phase}: {requests['perPod']} per pod, {requests['refused']} refused "
        "(KWOK, kube-scheduler, harness not counted)",
    )
    for row in requests["rows"][:MAX_ROWS]:
        table.add_row(row["program"], row["verb"], row["resource"], str(row["count"]), f"{row['perPod']:.2f}")
    if requests["rows"]:
        console.print(table)


def _processes(result: Result, console: Console) -> None:
    phases = result["phases"]
    floor = result["floors"]["before"]
    if not phases or floor is None:
        return
    table = Table("process", "CPU s, floor", *(f"CPU s, {phase['name']}" for phase in phases), "MiB")
    for name in phases[0]["processes"]:
        costs = [floor["creation"]["processes"], *(phase["processes"] for phase in phases)]
        seconds = (f"{cost.get(name, {}).get('cpuSeconds', 0):.1f}" for cost in costs)
        table.add_row(name, *seconds, f"{max(cost.get(name, {}).get('memoryMiB', 0) for cost in costs):.0f}")
    machines = [floor["creation"]["machine"], *(phase["machine"] for phase in phases)]
    recorder_seconds = (f"{machine.get('recorderCpuSeconds', 0):.1f}" for machine in machines)
    table.add_row("of suite: the recorder", *recorder_seconds, "")
    table.add_row("share of the CPU used by others", *(f"{machine['foreignShare']:.0%}" for machine in machines), "")
    console.print(table)
