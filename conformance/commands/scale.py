"""`grove-conformance scale`: parse, run, print."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from conformance import disk
from conformance.cluster import progress
from conformance.errors import Exit
from conformance.implementation import deployment
from conformance.implementation.parameters import assignments
from conformance.scale import run as runs
from conformance.scale import scenario as scenarios

MEASURED = "reference-plain"
"""The default implementation: the reference with the features that are enabled in Grove's chart. The authorizer is off
there (AUTH-13); it would make the API server call a webhook for each write of the operator and each deletion by the
garbage collector."""
ROWS = 14


class Binder(StrEnum):
    """The scheduler that binds the pods."""

    KUBE = "kube"
    GANG = "gang"


def scale(
    implementation: Annotated[
        str, typer.Option(help="Implementation to measure (name or path of a descriptor).")
    ] = MEASURED,
    scenario: Annotated[str, typer.Option(help="Name of a scenario in fixtures/scale/.")] = "scale-1000",
    scheduler: Annotated[
        Binder, typer.Option(help="Scheduler that binds the pods: kube-scheduler or the gang scheduler.")
    ] = Binder.KUBE,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Set a parameter of the descriptor, NAME=VALUE (repeatable).")
    ] = None,
    report_dir: Annotated[Path, typer.Option(help="Folder for the result file.")] = Path("reports"),
) -> int:
    """Measure how long a large PodCliqueSet takes to deploy and delete, relative to its pods without an operator."""
    disk.require(report_dir, 0, where=f"--report-dir {report_dir}", hint="give another folder")
    judged, supplied = deployment.load(implementation, assignments(settings or []))
    plan = runs.Plan(scenarios.load(scenario), judged, supplied, scheduler.value)
    try:
        with progress.terminal("scale") as report:
            result = runs.run(plan, report)
    except runs.RunFailed as failure:
        typer.echo(f"not reached: {failure}", err=True)
        return Exit.NOT_CONFORMANT
    path = report_dir / runs.file_name(result)
    path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
    show(result, Console())
    typer.echo(f"result: {path}")
    return Exit.CONFORMANT


def show(result: dict[str, Any], console: Console) -> None:
    """Print the tables of a result."""
    floor = result["floors"]["podsReadySeconds"]
    deploy, delete = result["phases"]["deploy"], result["phases"]["delete"]
    times = Table(
        "marker",
        "seconds",
        "× floor",
        title=f"{result['scenario']}: {result['pods']} pods, {result['nodes']} nodes, bound by {result['binder']}",
    )
    for side in ("before", "after"):
        times.add_row(f"raw floor, {side}", f"{result['floors'][side]['podsReadySeconds']:.2f}", "")
    for name, seconds in {**deploy["markers"], **delete["markers"]}.items():
        times.add_row(name, "-" if seconds is None else f"{seconds:.2f}", _ratio(seconds, floor))
    console.print(times)
    for phase, data in (("create", deploy), ("delete", delete)):
        writes = Table(
            "program",
            "verb",
            "resource",
            "count",
            "a pod",
            title=f"API writes, {phase}: {data['writes']['perPod']} a pod (KWOK, kube-scheduler, harness not counted)",
        )
        for row in data["writes"]["rows"][:ROWS]:
            writes.add_row(row["program"], row["verb"], row["resource"], str(row["count"]), f"{row['perPod']:.2f}")
        console.print(writes)
    cost = Table("process", "CPU s, floor", "CPU s, create", "CPU s, delete", "MiB")
    for name, create in deploy["processes"].items():
        cost.add_row(
            name,
            f"{result['floors']['after']['processes'].get(name, {}).get('cpuSeconds', 0):.1f}",
            f"{create['cpuSeconds']:.1f}",
            f"{delete['processes'].get(name, {}).get('cpuSeconds', 0):.1f}",
            f"{create['memoryMiB']:.0f}",
        )
    console.print(cost)


def _ratio(seconds: float | None, floor: float) -> str:
    return "" if seconds is None or not floor else f"{seconds / floor:.2f}"
