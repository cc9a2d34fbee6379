"""`grove-conformance checklist`: update the list of checks from the ledgers of runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from conformance.errors import UsageError
from conformance.run import launch
from conformance.suite import book, checklist
from conformance.suite.settings import RunSettings


def write_checklist(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, such as reports/r1122-130002-612d.")],
    check: Annotated[bool, typer.Option("--check", help="Only check that the runs agree with the list.")] = False,
) -> None:
    """Update the list of checks that each test makes (checklist.yaml) from runs in which the tests passed."""
    known = checklist.load()
    with tempfile.TemporaryDirectory() as folder:
        plan = launch.collect(RunSettings(run="checklist", directory=folder, implementation=""))
    seen = known
    for run in runs:
        if not (run / "ledger").is_dir():
            raise UsageError("has no ledger", where=str(run), hint="give the folder of a run")
        seen = checklist.merged(seen, checklist.of_run(book.read(run / "ledger")), plan.collected)
    if check and (late := checklist.differing(known, seen)):
        more = f" (and {len(late) - 1} more)" if len(late) > 1 else ""
        raise UsageError(f"is not up to date: {late[0]}{more}", where="checklist.yaml", hint="run: make checklist")
    if not check:
        checklist.FILE.write_text(checklist.render(seen), "utf-8")
        typer.echo(str(checklist.FILE))
