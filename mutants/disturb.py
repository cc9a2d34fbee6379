"""`python -m mutants.disturb`: prove that `nemesis` finds each mutant that misbehaves only when something fails."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from mutants import replacement
from mutants.registry import CHANGES, FRAGILE, Fragile

FOUND = 1
"""The exit code of a campaign with a finding."""


def main(
    mutant: Annotated[list[str] | None, typer.Option(help="Prove only this mutant (repeatable).")] = None,
    budget: Annotated[str, typer.Option(help="The time for each.")] = "10m",
) -> None:
    """Prove the mutants one after the other."""
    workdir = Path(tempfile.mkdtemp(prefix="disturbed-"))
    chosen = FRAGILE.named(mutant or list(FRAGILE.all()))
    words = [_prove(chosen_mutant, workdir, budget) for chosen_mutant in chosen]
    typer.echo(f"{words.count('found')} of {len(chosen)} found; reports: {workdir}")
    sys.exit(0 if chosen and all(word == "found" for word in words) else 1)


def _prove(switch: Fragile, workdir: Path, budget: str) -> str:
    calls, folder, started_at = workdir / f"{switch.name}.calls", workdir / switch.name, time.monotonic()
    command = [sys.executable, "-m", "conformance", "nemesis", "change" if switch.scenario == CHANGES else "run"]
    command += ["--implementation", "reference", "--set", f"mutant={switch.name}"]
    if switch.scenario != CHANGES:
        command += ["--scenario", switch.scenario, "--role", switch.role, "--at", switch.at]
        command += [word for fault in switch.faults for word in ("--fault", fault)]
    command += ["--first", "--budget", budget, "--report-dir", str(folder)]
    with (workdir / f"{switch.name}.log").open("wb") as output:
        environment = os.environ | {replacement.CALLS: str(calls)}
        done = subprocess.run(command, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    uncalled = replacement.uncalled(calls)
    if uncalled is None or uncalled:
        word = "NOT CALLED"
    else:
        word = {FOUND: "found", 0: "NOT FOUND"}.get(done.returncode, f"EXIT CODE {done.returncode}")
    typer.echo(f"{word:10} {switch.name:28} {time.monotonic() - started_at:4.0f} s  {switch.scenario}: {switch.text}")
    return word


if __name__ == "__main__":
    typer.run(main)
