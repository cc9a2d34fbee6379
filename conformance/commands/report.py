"""`grove-conformance report …`: what is done with reports after the runs that made them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from conformance import documents
from conformance.commands.run import suite_digest
from conformance.errors import Exit, UsageError
from conformance.report import comparison, comparison_text, model, reading, recorded, recovery, terminal, verification
from conformance.report.comparison import Side
from conformance.report.terminal import clean
from conformance.run import launch
from conformance.suite.outcomes.ledger import AnyEvent
from conformance.suite.registry import requirement

app = typer.Typer(help="Compare, combine, verify and publish reports.", no_args_is_help=True, add_completion=False)

REPORT = "report.yaml, or the folder of its run"
Report = Annotated[Path, typer.Argument(metavar="REPORT", help=f"{REPORT}.")]


@app.command()
def compare(
    old: Annotated[Path, typer.Argument(help=f"{REPORT}, or one recorded run.")],
    new: Annotated[Path, typer.Argument(help=f"{REPORT}, or one recorded run.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
) -> int:
    """Say what has changed between two reports.

    Exit codes: 10 for a regression (a requirement that passed fails, or is blocked); 6 if there is none, but the new
    report does not judge all that the old one did; 5 if no requirement was judged in both; else 0. Times decide
    nothing.
    """
    found = comparison.compare(_side(old), _side(new))
    lines = comparison_text.markdown(found) if markdown else comparison_text.text(found)
    for line in lines:
        typer.echo(line)
    return found.exit


@app.command()
def verify(report: Report) -> int:
    """Check the digests, counts, texts, evidence and ledger of a report against each other.

    Exit codes: 1 if something is wrong, else 0. Who made a report cannot be seen from it.
    """
    content = reading.load(report)
    found = verification.verify(content, reading.place(report).parent, requirement.load(), suite_digest())
    for what in found.problems:
        typer.echo(f"wrong: {clean(what)}")
    for what in found.unchecked:
        typer.echo(f"not checked: {clean(what)}")
    if not found.problems:
        typer.echo(f"verified: {', '.join(found.checked)}")
    return Exit.NOT_CONFORMANT if found.problems else Exit.CONFORMANT


@app.command()
def recover(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run, as reports/<run>.")],
) -> int:
    """Write the report of a run that was killed, from its ledger.

    The report is incomplete, and its verdict that of an interrupted run: exit code 2, or 1 if a MUST had failed.
    """
    events = recovery.events(run)
    if recovery.started(events).suite_digest != suite_digest():
        typer.echo("the suite has changed since that run: its requirements are read as they are now", err=True)
    recovery.mark(run)
    return _judged(run, recovery.events(run))


def _judged(folder: Path, events: list[AnyEvent]) -> int:
    """Judge events, and write and show the report in a folder of its own. Return the exit code."""
    last = datetime.fromtimestamp(events[-1].wall, UTC).date()
    report = model.judge(requirement.load(), events, last)
    path = folder / reading.NAME
    launch.write(path, report)
    terminal.show(report, path, Console(highlight=False))
    return report.exit


def _side(path: Path) -> Side:
    name = documents.shown(path)
    place = reading.place(path)
    text = reading.text(place)
    if reading.is_report(text):
        return comparison.of_report(reading.parsed(text, place), name)
    runs = recorded.read(path)
    if len(runs) != 1:
        raise UsageError(f"has {len(runs)} runs", where=name, hint="give a report, or a file with one recorded run")
    return comparison.of_record(runs[0], requirement.load(), name)
