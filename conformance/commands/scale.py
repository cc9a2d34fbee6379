"""`grove-conformance scale`: measures one run, or shows stored results over time and size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from conformance import disk, documents
from conformance.cluster import progress
from conformance.cluster.assets import versions
from conformance.cluster.controlplane import Cluster
from conformance.commands import output
from conformance.commands.kubernetes import Gates, Kubernetes, Presets, RuntimeConfig, requested_features
from conformance.commands.options import decode_into
from conformance.commands.scale_compare import Binder, compare
from conformance.errors import Exit, UsageError
from conformance.implementation import deployment
from conformance.implementation.descriptor import Role
from conformance.implementation.parameters import assignments
from conformance.implementation.values import ClusterFacts
from conformance.nemesis.proxy.front import proxy_in_front
from conformance.scale import growth as growths
from conformance.scale import results, tables, upstream
from conformance.scale import run as runs
from conformance.scale import scenario as scenarios
from conformance.scale import trend as trends
from conformance.scale.compare import metrics, sides
from conformance.scale.environment import RunFailed
from conformance.scale.play import NAMESPACE
from conformance.suite.scenes.api import Loop

DEFAULT_IMPLEMENTATION = "reference-plain"
"""The default implementation: the reference with the features that Grove's chart enables. In the chart the authorizer
is disabled (AUTH-13); it would make the API server call a webhook for each write of the operator and each deletion by
the garbage collector."""


app = typer.Typer(add_completion=False)
app.command("compare")(compare)


@dataclass(frozen=True, kw_only=True)
class ScaleOptions:
    """The options of `scale`."""

    implementation: Annotated[str, typer.Option(help="Implementation to measure (name or path of a descriptor).")] = (
        DEFAULT_IMPLEMENTATION
    )
    scenario: Annotated[str, typer.Option(help="Name of a scenario in fixtures/scale/, or a scenario file.")] = (
        "scale-1000"
    )
    scheduler: Annotated[
        Binder, typer.Option(help="Scheduler that binds the pods: kube-scheduler or the gang scheduler.")
    ] = Binder.KUBE
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Set a parameter of the descriptor, NAME=VALUE (repeatable).")
    ] = None
    report_dir: Annotated[Path, typer.Option(help="Folder for the result file.")] = Path("reports")
    write_floor: Annotated[
        bool, typer.Option("--write-floor", help="Also measure the write floor: takes two clusters more.")
    ] = False
    upstream_result: Annotated[
        Path | None, typer.Option(help="Also write the result in the form of Grove's own scale tests to this file.")
    ] = None
    result: Annotated[Path | None, typer.Option(help="Write the result to this file instead.")] = None
    proxied: Annotated[
        bool, typer.Option("--proxied", help="Put the proxy of nemesis before the operator, to see what it costs.")
    ] = False
    kubernetes: Kubernetes = ""
    features: Presets = None
    feature_gates: Gates = None
    runtime_config: RuntimeConfig = None


@app.callback(invoke_without_command=True)
@decode_into(ScaleOptions)
def scale(context: typer.Context, options: ScaleOptions) -> int | None:
    """Measure how long a large PodCliqueSet takes to deploy and delete, relative to its pods without an operator."""
    if context.invoked_subcommand is not None:
        return None
    disk.require_space(options.report_dir, 0, location=f"--report-dir {options.report_dir}", hint="give another folder")
    judged, supplied = deployment.load(options.implementation, assignments(options.settings or []))
    if options.write_floor and options.scheduler is not Binder.KUBE:
        raise UsageError("--write-floor needs kube-scheduler to bind the pods", hint="leave --scheduler out")
    for output_path in (options.result, options.upstream_result):
        if output_path is not None:
            disk.make_folder(output_path.parent, location=str(output_path), hint="give another file")
    plan = runs.ScalePlan(
        scenarios.load(options.scenario),
        judged,
        supplied,
        options.scheduler.value,
        kubernetes=versions(options.kubernetes)["kubernetes"],
        features=requested_features(options.features, options.feature_gates, options.runtime_config),
        front=_proxy if options.proxied else None,
    )

    def save_result(document: results.Result) -> None:
        path = options.result or options.report_dir / results.file_name(document)
        results.write(document, path)
        if options.upstream_result is not None:
            results.write(upstream.result_file(document, NAMESPACE), options.upstream_result)
        tables.show(document, output.console())
        typer.echo(f"result: {path}")

    try:
        with progress.terminal("scale") as report:
            write_floor_result = runs.measure_write_floor(plan, report) if options.write_floor else None
            runs.run(plan, report, save_result, write_floor_result)
    except RunFailed as failure:
        typer.echo(f"not reached: {failure}", err=True)
        return Exit.NOT_CONFORMANT
    return Exit.CONFORMANT


@contextmanager
def _proxy(cluster: Cluster) -> Iterator[ClusterFacts]:
    loop = Loop()
    try:
        with proxy_in_front(cluster, Role.OPERATOR, loop) as (_, facts):
            yield facts
    finally:
        loop.close()


@app.command()
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
    stored_results = _read_results(results or [])
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


@app.command()
def growth(
    results: Annotated[list[str], typer.Argument(help="Result files, or folders with them.")],
    pods: Annotated[int, typer.Option(min=1, help="Number of pods to extrapolate to.")] = 100_000,
) -> None:
    """Show which values grow with the number of pods, and how, as a Markdown table: times, CPU, memory, storage."""
    stored_results = _read_results(results)
    if not stored_results:
        raise UsageError("there is no result", hint="name result files or folders")
    typer.echo(growths.table(stored_results, pods))


def _read_results(arguments: list[str]) -> list[results.Result]:
    """Read result files and folders with them, and print which files are left out."""
    stored_results, rejections = sides.load_readable(arguments)
    for reason in rejections:
        typer.echo(f"left out: {reason}", err=True)
    return stored_results
