"""`make variants`: prove that the suite passes every permitted difference.

The whole suite runs against all variants that can be armed at once. Each other variant runs alone on the requirements
that it names. If a requirement fails in the combined run, each variant that could be the cause also runs alone. A
variant whose replacement was never called, or never made a difference, is an error, because its run has shown nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import psutil
import typer

from mutants import prove, results, runs, trials
from mutants.registry import VARIANTS, Variant
from mutants.runs import Proof
from mutants.trials import Trial


def main(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Only what can be armed at once on the usual cluster, and what that names first."),
    ] = False,
) -> None:
    """Prove all variants: together on the whole suite, and alone if they cannot be armed with the others."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # no run may outlive this process
    variants = list(VARIANTS.all().values())
    combined = trials.combined_trials(variants, whole=not quick)
    proofs = at_once([trial for trial in combined if not quick or trial.bench is trials.USUAL])
    suspects = [variant for proof in proofs for variant in suspected(proof, variants)]
    parallel = runs.lanes(os.cpu_count() or 1, psutil.virtual_memory().total)
    separate_trials = [
        Trial.of_variant(variant) for variant in variants if (variant.conflict and not quick) or variant in suspects
    ]
    for bench in trials.BENCHES:
        proofs += prove.prove([trial for trial in separate_trials if trial.bench is bench], parallel, bench)
    typer.echo(results.summary(map(results.Outcome.of, proofs)))
    sys.exit(0 if proofs and all(proof.right for proof in proofs) else 1)


def at_once(combined: Sequence[Trial]) -> list[Proof]:
    """Run combined trials one after the other, and print the findings of each trial."""
    proofs = []
    workdir = Path(tempfile.mkdtemp(prefix="variants-"))
    for trial in combined:
        typer.echo(f"{trial.text} on {trial.bench.implementation}: {', '.join(trial.switches)}")
        proofs.append(runs.run(trial, workdir))
        typer.echo(prove.lines(proofs[-1]))
    typer.echo(f"reports: {workdir}")
    return proofs


def suspected(proof: Proof, variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants that may have caused the failures of a combined run: the variants that name a failed
    requirement or, if there are none, all armed variants."""
    if not proof.wrong:
        return []
    armed = [variant for variant in variants if variant.name in proof.trial.switches]
    candidates = [variant for variant in armed if not proof.wrong.keys().isdisjoint(variant.passes)]
    return candidates or armed


if __name__ == "__main__":
    typer.run(main)
