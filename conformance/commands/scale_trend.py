"""`grove-conformance scale trend`: parses, reads, writes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance import disk, documents
from conformance.errors import UsageError
from conformance.scale import trend as trends
from conformance.scale import upstream
from conformance.scale.compare import metrics, sides


def trend(
    results: Annotated[list[str] | None, typer.Argument(help="Result files, or folders with them.")] = None,
    upstream_history: Annotated[
        Path | None, typer.Option(help="Published history of Grove's own scale tests (index/runs.ndjson).")
    ] = None,
    metric: Annotated[str, typer.Option(metavar="PHASE/MARKER", help="Time to show.")] = "deploy/pods-ready",
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("reports/trend.html"),
) -> None:
    """Show stored results over time, and their growth with the number of pods, as one HTML page."""
    if not results and upstream_history is None:
        raise UsageError("there is nothing to show", hint="name result files or folders, or --upstream-history")
    metric = metric.replace("xfloor", "×floor")
    stored_results, rejections = sides.load_readable(results or [])
    for reason in rejections:
        typer.echo(f"left out: {reason}", err=True)
    runs = list(upstream.history(upstream_history)) if upstream_history is not None else []
    metric_names = {name for result in stored_results for name in metrics.times(result)} | {
        name for run in runs for name in run.seconds
    }
    if metric not in metric_names:
        raise UsageError(
            f'no run has the metric "{metric}"', where="--metric", hint=documents.suggestion(metric, metric_names)
        )
    page = trends.page(stored_results, runs, metric)
    disk.make_folder(output.parent, location=f"--output {output}", hint="give another file")
    with disk.usage_errors(location=f"--output {output}", hint="give another file"):
        output.write_text(page, encoding="utf-8")
    for name, power_law in trends.growth(stored_results, metric).items():
        typer.echo(f"{name}: {metric} grows with pods to the power of {power_law.exponent:z.2f}")
    typer.echo(f"trend: {output}")
