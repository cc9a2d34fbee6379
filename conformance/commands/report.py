"""`grove-conformance report …`: compares, combines, verifies and publishes reports after their runs."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from conformance import bounded, disk, documents
from conformance.errors import Exit, UsageError
from conformance.implementation import expectations
from conformance.publishing import matrix as matrices
from conformance.publishing import published, verification
from conformance.report import (
    baseline,
    check_annotations,
    combining,
    comparison,
    comparison_text,
    model,
    reading,
    recorded,
    recovery,
    terminal,
)
from conformance.report.comparison import ComparedReport
from conformance.report.document import Document, render
from conformance.report.markdown import replace_between
from conformance.report.terminal import clean, printable
from conformance.run import launch
from conformance.run.preparation import suite_digest
from conformance.suite.outcomes import ledger_file
from conformance.suite.outcomes.ledger import AnyEvent
from conformance.suite.registry import requirement

app = typer.Typer(help="Compare, combine, verify and publish reports.", no_args_is_help=True, add_completion=False)

EXPIRES_AFTER = timedelta(days=90)
"""The time after which the expected failures of a new baseline expire."""
LEDGER_HINT = "give the folder of a run, with its ledger"
REPORT = "report.yaml, or the folder of its run"
Report = Annotated[Path, typer.Argument(metavar="REPORT", help=f"{REPORT}.")]


@app.command()
def compare(
    old: Annotated[Path, typer.Argument(help=f"{REPORT}, or one recorded run.")],
    new: Annotated[Path, typer.Argument(help=f"{REPORT}, or one recorded run.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
) -> int:
    """Show what has changed between two reports.

    Exit codes: 10 for a regression (a requirement that passed now fails or is blocked); 6 if there is no regression,
    but the new report does not judge everything that the old one did; 5 if no requirement was judged in both; otherwise
    0. Times have no influence.
    """
    result = comparison.compare(_read_side(old), _read_side(new))
    lines = comparison_text.markdown(result) if markdown else comparison_text.text(result)
    for line in lines:
        typer.echo(line)
    return result.exit


@app.command()
def verify(report: Report) -> int:
    """Check the digests, counts, texts and ledger of a report, and the files next to it, against each other.

    Exit codes: 1 if something is wrong, otherwise 0. The check cannot show who made a report.
    """
    path = reading.report_path(report)
    text = reading.text(path)
    content = reading.parse(text, path)
    verified = _verify(content, path)
    for problem in verified.problems:
        typer.echo(f"wrong: {clean(problem)}")
    for note in verified.unchecked:
        typer.echo(f"not checked: {clean(note)}")
    if text != render(content):
        typer.echo(f"not checked: comments and layout of {clean(path.name)}, which are not those of the suite")
    if not verified.problems:
        typer.echo(f"verified: {', '.join(verified.checked)}")
    return Exit.NOT_CONFORMANT if verified.problems else Exit.CONFORMANT


@app.command()
def submit(
    report: Report,
    to: Annotated[Path, typer.Option(help="Folder of published reports.")],
    url: Annotated[str, typer.Option(help="Page of the implementation, for a new README.md.")] = "",
    mode: Annotated[str, typer.Option(help="How the implementation was configured, if there is more than one way.")] = (
        "default"
    ),
) -> None:
    """Add a report to a folder of published reports, and to its implementation's README.md there.

    The report is stored as RELEASE/IMPLEMENTATION/LINE-VERSION-MODE-report.yaml, and replaces an earlier report with
    that name.
    """
    source = reading.report_path(report)
    text = reading.text(source)
    content = reading.parse(text, source)
    _require_verified(content, report)
    published.require_publishable(content, documents.display_path(report))
    path = to / published.report_path(content, mode)
    with disk.usage_errors(location=f"--to {documents.display_path(to)}", hint="make room, or give another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.publish(path, text)
        readme = path.with_name(published.README)
        old_text = bounded.text(readme, bounded.MAX_BYTES, documents.display_path(readme)) if readme.exists() else ""
        disk.publish(readme, published.readme(old_text, content, path.parent, url=url))
    typer.echo(str(path))


@app.command()
def matrix(
    folder: Annotated[Path, typer.Argument(help="Folder of implementations, with their reports.")],
    to: Annotated[Path, typer.Option(help="Page to write: HTML, or Markdown if its name ends in .md.")],
) -> None:
    """Make a page that shows which requirements the implementations in a folder fulfil, by profile.

    In an existing Markdown page, only the table after `<!-- matrix -->` is replaced. The table after `<!-- matrix
    summary -->` has one line for each version.
    """
    result = matrices.matrix(published.read(folder), requirement.load())
    location = documents.display_path(to)
    if to.suffix == ".md":
        old_text = bounded.text(to, bounded.MAX_BYTES, location) if to.exists() else "<!-- matrix -->\n\n<!-- end -->\n"
        content = replace_between(old_text, "matrix", matrices.markdown(result))
        content = replace_between(content, "matrix summary", matrices.summary(result))
        if "<!-- matrix" not in old_text:
            hint = "add the lines <!-- matrix --> and <!-- end -->, or name a new file"
            raise UsageError("has no place for the matrix", where=location, hint=hint)
    else:
        content = matrices.page(result)
    with disk.usage_errors(location=f"--to {location}", hint="give a file in a folder that can be written"):
        to.parent.mkdir(parents=True, exist_ok=True)
        disk.publish(to, content)
    typer.echo(f"{location}: {len(result.columns)} versions, {len(result.profiles)} profiles")


@app.command("annotations")
def print_annotations(report: Report) -> None:
    """Print the failures of a run as annotations for GitHub's checks, one for each cause."""
    for command in check_annotations.commands(reading.load(report)):
        typer.echo(printable(command))


@app.command("baseline")
def write_baseline(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run, as reports/<run>.")],
    to: Annotated[
        Path | None,
        typer.Option(help="File for run --baseline; an existing one is renewed. Without it, print the list."),
    ] = None,
    expires: Annotated[
        str, typer.Option(metavar="DATE", help="Day from which they count as stale; by default in 90 days.")
    ] = "",
    reason: Annotated[str, typer.Option(help="Reason of the new ones; by default, what is wrong.")] = "",
) -> None:
    """Write the failures that make a run not conformant to a list of expected failures, each with a reason and an
    expiry date, so that CI shows only new failures.

    When a file is renewed, the texts of requirements that still fail are kept, and requirements that pass by now are
    removed. The same list can be part of the descriptor, as `expectedFailures`.
    """
    reading.require_ledger(run, LEDGER_HINT)
    day = _expiry_day(expires) if expires else datetime.now(UTC).date() + EXPIRES_AFTER
    events = list(ledger_file.read(run / "ledger"))
    name = recovery.start_event(events, run).implementation.name
    report = model.judge(requirement.load(), events, datetime.fromtimestamp(events[-1].wall, UTC).date())
    earlier = expectations.read(to, "--to")[1] if to is not None and to.exists() else None
    if earlier is not None and earlier.implementation != name:
        raise UsageError(
            f"has the failures of {earlier.implementation}, not of {name}", where=f"--to {to}", hint="give another file"
        )
    failures = baseline.expected_failures(report, earlier.expected_failures if earlier is not None else (), day, reason)
    if unjudged := baseline.unjudged(report):
        ids = f"{', '.join(unjudged[:4])}{f' and {len(unjudged) - 4} more' if len(unjudged) > 4 else ''}"
        typer.echo(f"not judged in this run, and not added: {ids} — renew it from a run that judges them", err=True)
    if to is None:
        typer.echo(expectations.text(name, failures), nl=False)
        return
    with disk.usage_errors(location=f"--to {to}", hint="give a file in a folder that can be written"):
        to.parent.mkdir(parents=True, exist_ok=True)
        disk.publish(to, expectations.text(name, failures))
    typer.echo(f"{documents.display_path(to)}: {len(failures)} expected failures of {name}")


def _expiry_day(text: str) -> date:
    try:
        expiry = date.fromisoformat(text)
    except ValueError:
        hint = "write YYYY-MM-DD, for example 2030-01-31"
        raise UsageError(f"{text!r} is not a date", where="--expires", hint=hint) from None
    if expiry <= datetime.now(UTC).date():
        raise UsageError(f"{text} is not in the future: all would be stale", where="--expires", hint="give a later day")
    return expiry


@app.command()
def recover(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run, as reports/<run>.")],
) -> int:
    """Write the report of a run that was killed, from its ledger.

    The report is incomplete and has the verdict of an interrupted run: exit code 2, or 1 if a MUST had failed.
    """
    events = recovery.events(run)
    if recovery.start_event(events).suite_digest != suite_digest():
        typer.echo("the suite has changed since that run: its requirements are read as they are now", err=True)
    recovery.mark_killed(run)
    return _judge(run, recovery.events(run))


@app.command()
def combine(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs, with their ledgers.")],
    to: Annotated[Path, typer.Option(help="Folder of the combined run; it must not exist.")],
) -> int:
    """Combine the shards of a run, or runs of one implementation, into one report with one verdict.

    A requirement that failed in one of the runs has failed. A missing shard is a harness error: there is no verdict,
    unless a MUST had failed. Exit codes: as for `run`; 4 if the runs do not belong together.
    """
    if to.exists():
        raise UsageError(
            "exists already", where=f"--to {documents.display_path(to)}", hint="give a folder that does not exist"
        )
    parts = [_read_part(folder) for folder in runs]
    events = combining.combine(parts)
    with disk.usage_errors(location=f"--to {documents.display_path(to)}", hint="make room, or give another folder"):
        to.mkdir(mode=0o700, parents=True)
        for folder, part in zip(runs, parts, strict=True):
            if (folder / "bundles").is_dir():
                shutil.copytree(folder / "bundles", to / part.folder, symlinks=True, copy_function=_link_or_copy)
        ledger_file.save(to / "ledger", events)
    return _judge(to, events)


def _read_part(folder: Path) -> combining.PartialRun:
    """Return a run that is to be combined. Raises UsageError unless its report and its ledger agree."""
    name = documents.display_path(folder)
    reading.require_ledger(folder, LEDGER_HINT)
    if not (folder / reading.NAME).is_file():
        raise UsageError(f"has no {reading.NAME}", where=name, hint=f"see grove-conformance report recover {name}")
    content = reading.load(folder)
    suite = content["verdict"]["suite"]
    if suite["digest"] != suite_digest():
        problem = f"was made by another version of the suite ({suite['version']}, {suite['digest'][:19]}…)"
        raise UsageError(problem, where=name, hint="combine runs with the version that made them")
    _require_verified(content, folder)
    return combining.partial_run(name, list(ledger_file.read(folder / "ledger")))


def _verify(content: Document, path: Path) -> verification.Verification:
    return verification.verify(content, path.parent, requirement.load(), suite_digest(), path.name)


def _require_verified(content: Document, report: Path) -> None:
    """Raise UsageError if a report was changed after it had been written."""
    if problems := _verify(content, reading.report_path(report)).problems:
        problem, hint = f"is not what was written: {clean(problems[0])}", "see grove-conformance report verify"
        raise UsageError(problem, where=documents.display_path(report), hint=hint)


def _link_or_copy(old: str, new: str) -> str:
    """Create a hard link to a file, or copy the file if it is on another file system."""
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError:
        shutil.copy2(old, new, follow_symlinks=False)
    return new


def _judge(folder: Path, events: list[AnyEvent]) -> int:
    """Judge events, write the report to a folder, and show it. Return the exit code."""
    last_day = datetime.fromtimestamp(events[-1].wall, UTC).date()
    report = model.judge(requirement.load(), events, last_day)
    path = folder / reading.NAME
    launch.write(path, report)
    terminal.show(report, path, Console(highlight=False))
    return report.exit


def _read_side(path: Path) -> ComparedReport:
    name = documents.display_path(path)
    report_path = reading.report_path(path)
    text = reading.text(report_path)
    if reading.is_report(text):
        return comparison.compared_report(reading.parse(text, report_path), name)
    runs = recorded.read(path)
    if len(runs) != 1:
        raise UsageError(f"has {len(runs)} runs", where=name, hint="give a report, or a file with one recorded run")
    return comparison.of_record(runs[0], requirement.load(), name)
