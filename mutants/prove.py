"""`make mutants`: prove that the suite catches each mutant.

For each mutant, the suite runs as a separate command with that mutant armed, on only the requirements that the mutant
names. If one of those requirements does not catch it, the mutant is a survivor, and the exit code is 1. A mutant whose
replacement was not called in its run is an error, regardless of the run's result. The reference without any mutant must
pass under the same conditions; otherwise a failure would prove nothing. `--variant NAME` shows that a variant alone
passes the requirements that it names.

Each shard stores its outcomes in a file (`mutants.results`). A shard that was killed continues where it stopped.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Annotated, TypeVar

import psutil
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mutants import results, runs, trials
from mutants.registry import MUTANTS, VARIANTS, Catalog, Switch
from mutants.results import Outcome, Results
from mutants.runs import Lanes, Proof
from mutants.trials import Bench, Trial
from reference_impl.extensions import UnknownNameError

T = TypeVar("T", bound=Switch)

COUNT_SECONDS = 30.0
"""Seconds between printed counts of proofs when there is no terminal for a progress bar."""


def main(
    only: Annotated[list[str] | None, typer.Option("--mutant", help="Prove only this mutant (repeatable).")] = None,
    just: Annotated[list[str] | None, typer.Option("--variant", help="Prove only this variant (repeatable).")] = None,
    selection: Annotated[
        bool, typer.Option("--selection", help="Prove the mutants of selection.yaml, without controls.")
    ] = False,
    shard: Annotated[str, typer.Option(help="Prove only the i-th of n parts, as i/n.")] = "1/1",
    parallel: Annotated[
        int, typer.Option(help="Number of parallel runs, each with its own cluster; 0 depends on cores and memory.")
    ] = 0,
    anew: Annotated[
        bool, typer.Option("--anew", help="Prove again what the result file of the shard has already.")
    ] = False,
) -> None:
    """Prove that each mutant is caught by the requirements that claim it."""
    part = _part(shard)
    only = [*(only or ()), *(trials.selection() if selection else ())]
    chosen = _named(MUTANTS, only if only or just else list(MUTANTS.all()))[part]
    permitted = _named(VARIANTS, just or [])[part]
    parallel = parallel or runs.lanes(os.cpu_count() or 1, psutil.virtual_memory().total)
    planned = [*map(Trial.of_variant, permitted), *map(Trial.of_mutant, chosen)]
    # The controls run alongside the other trials and show that nothing fails under the same conditions. The selection
    # has no controls, because they would take longer than the whole selection, and the same requirements pass when
    # everything is proved.
    for bench in trials.BENCHES:
        bench_mutants = [mutant for mutant in chosen if trials.bench(mutant.caught_by) is bench]
        planned += [] if selection else trials.controls(bench_mutants, parallel)
    file = None if only or just else results.file_of(shard)
    earlier = _earlier_results(file, anew)
    earlier_outcomes = [outcome for trial in planned if (outcome := earlier.of(trial))]
    if earlier_outcomes:
        typer.echo(f"{file} has {len(earlier_outcomes)} of {len(planned)} already; --anew proves them again")

    def keep(proof: Proof) -> None:
        earlier.add(Outcome.of(proof))
        if file is not None:
            earlier.write(file)

    proofs: list[Proof] = []
    for bench in trials.BENCHES:
        remaining = [trial for trial in planned if trial.bench is bench and earlier.of(trial) is None]
        proofs += prove(remaining, parallel, bench, keep)
    outcomes = [*earlier_outcomes, *map(Outcome.of, proofs)]
    typer.echo(results.summary(outcomes) + (f"; kept in {file}" if file else ""))
    sys.exit(0 if outcomes and all(outcome.right for outcome in outcomes) else 1)


def _earlier_results(file: Path | None, anew: bool) -> Results:
    """Return the results of an interrupted run of the same shard with the same code, or empty results."""
    if file is None or anew:
        return Results(results.code())
    try:
        earlier = results.read(file) if file.exists() else Results(results.code())
    except results.UnreadableError as error:
        raise typer.BadParameter(f"{error}; --anew replaces it", param_hint="--shard") from None
    if earlier.code == results.code():
        return earlier
    typer.echo(f"{file} is of other code, and will be replaced")
    return Results(results.code())


def _part(shard: str) -> slice:
    part, _, parts = shard.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise typer.BadParameter(f"{shard}: is not i/n, for example 1/3", param_hint="--shard")
    return slice(int(part) - 1, None, int(parts))


def _named(catalog: Catalog[T], names: Sequence[str]) -> list[T]:
    try:
        return catalog.named(names)
    except UnknownNameError as error:
        raise typer.BadParameter(str(error), param_hint=f"--{catalog.word}") from None


def prove(
    planned: Sequence[Trial], parallel: int, bench: Bench, keep: Callable[[Proof], None] = lambda proof: None
) -> list[Proof]:
    """Run the trials of one bench on lanes, longest first. Keep and print each proof as soon as it is available."""
    if not planned:
        return []
    workdir = Path(tempfile.mkdtemp(prefix="mutants-"))
    console = Console(soft_wrap=True, highlight=False, markup=False)
    proofs: list[Proof] = []
    with Lanes(min(parallel, len(planned)), bench) as lanes, ThreadPoolExecutor(parallel) as pool:

        def on_a_lane(trial: Trial) -> Proof:
            kubeconfig = lanes.free.get()
            try:
                return runs.run(trial, workdir, kubeconfig)
            finally:
                lanes.free.put(kubeconfig)

        futures = [pool.submit(on_a_lane, trial) for trial in trials.longest_first(planned)]
        try:
            for proof in with_progress(futures, console):
                proofs.append(proof)
                keep(proof)
                trials.remember([(proof.trial, proof.seconds)])
                console.print(lines(proof))
        finally:
            pool.shutdown(cancel_futures=True)
    if all(proof.right for proof in proofs):
        shutil.rmtree(workdir)
    else:
        console.print(f"reports and logs: {workdir}")
    return proofs


def with_progress(futures: Sequence[Future[Proof]], console: Console, every: float = COUNT_SECONDS) -> Iterator[Proof]:
    """Yield proofs as they complete. Show a progress bar on a terminal, otherwise print a count from time to time."""
    columns = (TextColumn("proofs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console) if console.is_terminal else None
    with bar or contextlib.nullcontext():
        task = bar.add_task("", total=len(futures)) if bar else None
        remaining = set(futures)
        while remaining:
            done, remaining = wait(remaining, every, FIRST_COMPLETED)
            yield from (future.result() for future in done)
            if bar and task is not None:
                bar.update(task, completed=len(futures) - len(remaining))
            elif not done:
                console.print(f"{len(futures) - len(remaining)} of {len(futures)} proofs")


def lines(proof: Proof) -> str:
    """Return a proof as text: a summary line, followed by its problems."""
    trial = proof.trial
    claimed = f"{len(trial.ids)} requirements" if trial.kind == "reference" else ", ".join(trial.ids)
    text = [f"{proof.word:11}{trial.name:26}{proof.seconds:5.0f} s  {claimed}: {trial.text}"]
    text += [f"           {identity}: {outcome}" for identity, outcome in proof.wrong.items()]
    text += [f"           {name}" for name in proof.uncalled]
    return "\n".join(text if proof.right else [*text, proof.detail])


if __name__ == "__main__":
    typer.run(main)
