"""`grove-conformance lab`: experiments about choices in the contract."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

import orjson
import typer

from conformance import disk, drawing
from conformance.cluster import progress
from conformance.cluster.assets import resolve_all, versions
from conformance.commands import output
from conformance.commands.kubernetes import Kubernetes
from conformance.errors import Exit, UsageError
from conformance.implementation.parameters import assignments
from conformance.lab import curves, playing, results
from conformance.lab.experiment import COURSES, LAYOUTS, WORKLOADS, Trial, select
from conformance.lab.gaps import instances
from conformance.lab.gaps import picture as gap_picture
from conformance.lab.gaps import playing as gap_playing
from conformance.lab.gaps import results as gap_results
from conformance.lab.gaps.forms import FORMS, KAI, Form
from conformance.lab.gaps.mappings import MAPPINGS

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Measure what choices in the contract cost.")


@app.callback()
def lab() -> None:
    """Measure what choices in the contract cost."""


@app.command()
def coherent(
    layout: Annotated[list[str] | None, typer.Option(help="Only this gang layout (repeatable).")] = None,
    workload: Annotated[list[str] | None, typer.Option(help="Only this workload (repeatable).")] = None,
    course: Annotated[list[str] | None, typer.Option(help="Only this course of events (repeatable).")] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often each update is played.")] = 3,
    resume: Annotated[
        Path | None, typer.Option(help="Result of an earlier run that was interrupted: play only what it lacks.")
    ] = None,
    report_dir: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("reports/lab"),
    kubernetes: Kubernetes = "",
) -> int:
    """Compare the gang layouts of coherent updates: the same workloads, undisturbed, under a preemption and with a node
    failure.

    The reference performs each update on a fake cluster. Writes a JSON document, which grows with each update, then a
    Markdown page and a picture.
    """
    drawing.require_matplotlib()
    disk.require_space(report_dir, 0, location=f"--report-dir {report_dir}", hint="give another folder")
    current_versions = versions(kubernetes)
    experiment = results.load(resume) if resume is not None else results.document(current_versions)
    if (original_version := experiment["environment"]["versions"].get("kubernetes", "")) != current_versions[
        "kubernetes"
    ]:
        raise UsageError(
            f"it was begun on Kubernetes {original_version}, not {current_versions['kubernetes']}",
            where=f"--resume {resume}",
            hint=f"add --kubernetes {original_version}",
        )
    files = Files(report_dir, experiment)
    trials = [
        trial
        for trial in plan_trials(layout or (), workload or (), course or (), runs)
        if not results.has(experiment, trial)
    ]
    try:
        with progress.terminal("lab") as report:
            for outcome in playing.play(trials, report, current_versions["kubernetes"]):
                results.add(experiment, outcome)
                files.save(experiment)
    except playing.TrialFailed as failure:
        typer.echo(f"not updated: {failure}", err=True)
        return Exit.NOT_CONFORMANT
    results.show(experiment, output.console())
    for path in files.write(experiment, _command(layout, workload, course, runs, kubernetes)):
        typer.echo(f"result: {path}")
    return Exit.CONFORMANT


def plan_trials(layout: Sequence[str], workload: Sequence[str], course: Sequence[str], runs: int) -> list[Trial]:
    """Return the trials to be run. Raises UsageError for an unknown name."""
    return [
        Trial(layout_name, workload_name, course_name, run)
        for layout_name in select(layout, LAYOUTS, "--layout")
        for workload_name in select(workload, WORKLOADS, "--workload")
        for course_name in select(course, COURSES, "--course")
        for run in range(1, runs + 1)
    ]


class Files:
    """The files of one experiment, which are named after the start time of the experiment."""

    def __init__(self, folder: Path, experiment: results.Document) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{datetime.fromisoformat(experiment['startedAt']):%Y%m%d-%H%M%S}-coherent"
        self.document, self.page, self.picture = (folder / f"{stem}.{suffix}" for suffix in ("json", "md", "svg"))

    def save(self, experiment: results.Document) -> None:
        """Write the results obtained so far."""
        self.document.write_bytes(orjson.dumps(experiment) + b"\n")

    def write(self, experiment: results.Document, command: str) -> list[Path]:
        """Write the document, the page and the picture, and return their paths."""
        self.save(experiment)
        self.page.write_text(results.markdown(experiment, command, self.picture.name), encoding="utf-8")
        self.picture.write_text(curves.draw(experiment), encoding="utf-8")
        return [self.document, self.page, self.picture]


def _command(
    layout: Sequence[str] | None,
    workload: Sequence[str] | None,
    course: Sequence[str] | None,
    runs: int,
    kubernetes: str,
) -> str:
    words = ["grove-conformance lab coherent"]
    for option, values in (("--layout", layout), ("--workload", workload), ("--course", course)):
        words += [f"{option} '{value}'" if " " in value else f"{option} {value}" for value in values or ()]
    return " ".join([*words, f"--runs {runs}", *([f"--kubernetes {kubernetes}"] if kubernetes else [])])


@app.command()
def gaps(
    form: Annotated[list[str] | None, typer.Option(help="Only this column: plain, groups, trees, …")] = None,
    gap: Annotated[list[str] | None, typer.Option(help="Only this gap (repeatable).")] = None,
    mappings: Annotated[bool, typer.Option(help="Also play mappings of one service to the Workload API.")] = True,
    kai: Annotated[
        list[str] | None,
        typer.Option(help="Also play KAI: a parameter of its descriptor, NAME=VALUE (repeatable)."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often each instance is played, side by side.")] = 2,
    report_dir: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("reports/lab"),
) -> int:
    """Show which needs of inference are met by plain pods, by Kubernetes' Workload API, and by a gang scheduler.

    Each instance is run on a fake cluster, and gates are removed as an operator would remove them. Writes a JSON
    document, a Markdown page, a picture, and for each instance its objects as YAML, a script of kubectl commands that
    repeats it, and its recorded history. An interrupted run writes the results that it has.
    """
    drawing.require_matplotlib()
    disk.require_space(report_dir, 0, location=f"--report-dir {report_dir}", hint="give another folder")
    columns = select(form or (), _available_forms(kai or ()), "--form")
    selected_gaps = select(gap or (), instances.load(), "--gap")
    gap_playing.load_descriptors(columns)
    for version in {column.kubernetes for column in columns}:
        with progress.terminal("programs") as report:
            resolve_all(report, version)
    experiment = gap_results.document({**versions(), "kubernetes": ", ".join(_minors(columns))}, columns, runs)
    stem = f"{datetime.fromisoformat(experiment['startedAt']):%Y%m%d-%H%M%S}-gaps"
    instances_to_play = [instance for entry in selected_gaps for instance in entry.instances]
    rows = MAPPINGS if mappings else ()
    try:
        with (
            progress.terminal("lab") as report,
            closing(gap_playing.play(columns, instances_to_play, rows, runs, report_dir / stem, report)) as outcomes,
        ):
            for outcome in outcomes:
                gap_results.add(experiment, outcome)
        experiment["complete"] = True
    finally:
        gap_results.show(experiment, selected_gaps, output.console())
        options = [f"--{name} {value}" for name, values in (("form", form), ("gap", gap)) for value in values or ()]
        options += [*([] if mappings else ["--no-mappings"]), *(["--kai …"] if kai else [])]
        command = " ".join(["grove-conformance lab gaps", *options, f"--runs {runs}"])
        page, image, data = (report_dir / f"{stem}.{suffix}" for suffix in ("md", "svg", "json"))
        data.write_bytes(orjson.dumps(experiment) + b"\n")
        page.write_text(gap_results.markdown(experiment, selected_gaps, command, image.name), encoding="utf-8")
        image.write_text(gap_picture.draw(experiment, selected_gaps), encoding="utf-8")
        for path in (page, image, data, report_dir / stem):
            typer.echo(f"result: {path}")
    for failure in experiment["failures"]:
        typer.echo(f"not played: {failure}", err=True)
    return Exit.NOT_CONFORMANT if experiment["failures"] else Exit.CONFORMANT


def _available_forms(kai: Sequence[str]) -> Sequence[Form]:
    """Return the available columns. KAI is included only if its programs are given. Raises UsageError if an assignment
    is invalid."""
    return [*FORMS, *([replace(KAI, parameters=tuple(assignments(kai, "--kai").items()))] if kai else [])]


def _minors(columns: Sequence[Form]) -> list[str]:
    """Return the Kubernetes versions of the columns."""
    return sorted({versions(column.kubernetes)["kubernetes"] for column in columns})
