"""`grove-conformance findings check | record`: compares pages of findings with the runs that they describe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.documents import display_path
from conformance.errors import Exit, UsageError
from conformance.report import findings, recorded
from conformance.suite.registry import requirement

app = typer.Typer(help="Check pages of findings against reports of runs.", no_args_is_help=True, add_completion=False)

Reports = Annotated[list[Path], typer.Argument(metavar="REPORT…", help="report.yaml of a run, or recorded runs.")]


@app.command()
def check(
    reports: Reports,
    pages: Annotated[list[Path], typer.Option(help="Page of findings, or a folder of pages (repeatable).")],
) -> int:
    """Check that each finding still fails in one of the runs, and that each failure has a finding.

    A finding is a section whose heading starts with requirement ids: `## CORE-026: failed pods are never replaced`.
    """
    entries = findings.read(pages)
    problems = findings.problems(entries, _runs(reports), requirement.load())
    for line in problems:
        typer.echo(line)
    if not problems:
        typer.echo(f"{len(entries)} findings agree with the runs")
    return Exit.NOT_CONFORMANT if problems else Exit.CONFORMANT


@app.command()
def record(
    reports: Reports,
    to: Annotated[Path, typer.Option(help="File to write.")],
) -> None:
    """Write the outcomes of runs to a small file that `check` can also read, because reports are too large to be
    kept."""
    runs = _runs(reports)
    if not to.parent.is_dir():
        raise UsageError("is not a folder", where=display_path(to.parent), hint="name a file in a folder that exists")
    to.write_text(recorded.render(runs), "utf-8")
    typer.echo(str(to))


def _runs(reports: list[Path]) -> list[recorded.Run]:
    return [run for path in reports for run in recorded.read(path)]
