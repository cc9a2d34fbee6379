"""`make mutants`: prove that the suite catches each mutant, and rejects no variant.

Each mutant is armed in turn and the suite, as its own command, runs just the requirements that the mutant names. A
mutant that one of them does not catch is a survivor, and the exit code is 1. A mutant whose replacement was not called
in its run is an error, whatever the run says. The reference without any mutant has to pass under the same conditions:
otherwise a failure would prove nothing. So does each variant.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Annotated, Any, Literal, TypeVar

import typer
import yaml

from mutants import replacement
from mutants.registry import MUTANTS, VARIANTS, Catalog, Mutant, Switch, Variant
from reference_impl.extensions import UnknownNameError

TIME_SCALE = "0.25"
"""Waits for what a broken implementation never does are cut short."""

RUNS = multiprocessing.get_context("forkserver")
"""Where runs come from: to import the suite anew for each would be a fifth of their CPU."""
RUNS.set_forkserver_preload(["conformance.cli", "allure_pytest.plugin", "hypothesis", "xdist.plugin"])


T = TypeVar("T", bound=Switch)

WORDS = {"mutant": ("killed", "SURVIVED"), "variant": ("passed", "REJECTED"), "reference": ("passed", "FAILED")}

INVARIANT = "INV"
"""The area of requirements that every test judges."""


@dataclass(frozen=True)
class Trial:
    """A run of the suite: against what, on which requirements, and which outcome each of them must have."""

    kind: Literal["mutant", "variant", "reference"]
    name: str
    text: str
    ids: tuple[str, ...]
    time_scale: str = TIME_SCALE
    blocked: tuple[str, ...] = ()
    """Those of the ids that a test which ends early must leave without a verdict."""

    def right(self, identity: str) -> str:
        if identity in self.blocked:
            return "blocked"
        return "failed" if self.kind == "mutant" else "passed"

    @classmethod
    def of_mutant(cls, mutant: Mutant) -> Trial:
        ids = (*mutant.caught_by, *mutant.blocks)
        return cls("mutant", mutant.name, mutant.text, ids, blocked=mutant.blocks)

    @classmethod
    def of_variant(cls, variant: Variant) -> Trial:
        return cls("variant", variant.name, variant.text, variant.passes, str(variant.time_scale or TIME_SCALE))


def controls(chosen: Sequence[Mutant]) -> list[Trial]:
    """No mutant at all, with the requirements that the chosen ones claim: a run for each area of them. Invariants are
    judged in all of these, and would select nearly every test by themselves."""
    areas: dict[str, list[str]] = {}
    for identity in sorted({identity for mutant in chosen for identity in (*mutant.caught_by, *mutant.blocks)}):
        areas.setdefault(identity.partition("-")[0], []).append(identity)
    if len(areas) > 1:
        areas.pop(INVARIANT, None)
    return [
        Trial("reference", f"control-{area}", f"{area}, the reference as it is", tuple(claimed))
        for area, claimed in areas.items()
    ]


def selection() -> list[str]:
    """The mutants that `make test` proves."""
    return list(yaml.safe_load((Path(__file__).parent / "selection.yaml").read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Proof:
    trial: Trial
    wrong: dict[str, str]
    """Requirements that should have had another outcome, with the one that they had."""
    uncalled: tuple[str, ...]
    """Replacements that were never called: then the run proves nothing."""
    seconds: float
    detail: str

    @property
    def right(self) -> bool:
        return not self.wrong and not self.uncalled

    @property
    def word(self) -> str:
        """What the run has shown: the outcome in one word or two."""
        if self.uncalled:
            return "NOT CALLED"
        return WORDS[self.trial.kind][bool(self.wrong)]


class Lanes:
    """Clusters on which runs follow each other: bringing one up for each mutant would cost as much again."""

    def __init__(self, count: int) -> None:
        self._names = [f"mutants-{os.getpid()}-{number}" for number in range(count)]
        self.free: Queue[str] = Queue()

    def __enter__(self) -> Lanes:
        for name in self._names:
            _conformance("cluster", "up", name, "--owner", str(os.getpid()), check=True)
            self.free.put(_conformance("cluster", "kubeconfig", name, check=True).stdout.strip())
        return self

    def __exit__(self, *error: object) -> None:
        for name in self._names:
            _conformance("cluster", "down", name)


def _conformance(*arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check)


def _run(arguments: Sequence[str], output: Path, calls: Path) -> None:
    """`python -m conformance` in a process of its own that has imported it already; ends with its exit code."""
    with output.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ[replacement.CALLS] = str(calls)
    sys.argv = ["grove-conformance", *arguments]
    runpy.run_module("conformance", run_name="__main__")


def prove(trial: Trial, workdir: Path, kubeconfig: str) -> Proof:
    """Runs the suite against one mutant, one variant or the reference as it is, on a cluster that is there."""
    begin = time.monotonic()
    folder = workdir / f"{trial.kind}-{trial.name}"
    arguments = ["run", "--implementation", "reference", "--workers", "0", "--time-scale", trial.time_scale]
    arguments += ["--cluster", "existing", "--kubeconfig", kubeconfig, "--report-dir", str(folder)]
    if trial.kind == "mutant":
        arguments += ["--fail-fast"]
    if trial.kind != "reference":
        arguments += ["--set", f"{trial.kind}={trial.name}"]
    for identity in trial.ids:
        arguments += ["--id", identity]
    output = workdir / f"{folder.name}.log"
    calls = workdir / f"{folder.name}.calls"
    run = RUNS.Process(target=_run, args=(arguments, output, calls))
    run.start()
    run.join()
    outcomes = _outcomes(folder)
    wrong = {i: outcomes.get(i, "not in the report") for i in trial.ids if outcomes.get(i) != trial.right(i)}
    if trial.kind != "mutant":
        # What fails of itself proves nothing, whatever requirement it is.
        wrong |= {i: outcome for i, outcome in outcomes.items() if outcome == "failed"}
    # What only should be decides no verdict: then nothing that counts was judged.
    codes = (1,) if _decides(folder, trial.ids) else (1, 5)
    if trial.kind == "mutant" and run.exitcode not in codes and not wrong:
        wrong = {"exit code": f"{run.exitcode}, not {codes[-1]}"}
    return Proof(trial, wrong, _uncalled(trial, calls), time.monotonic() - begin, output.read_text("utf-8")[-2000:])


def _uncalled(trial: Trial, calls: Path) -> tuple[str, ...]:
    """Return the replacements of a mutant or variant that its run never called."""
    if trial.kind == "reference":
        return ()
    found = replacement.uncalled(calls)
    return ("nothing was replaced",) if found is None else tuple(sorted(found))


def _outcomes(folder: Path) -> dict[str, str]:
    return {entry["id"]: entry["outcome"] for entry in _requirements(folder)}


def _decides(folder: Path, claimed: Sequence[str]) -> bool:
    return any(entry["level"] == "MUST" for entry in _requirements(folder) if entry["id"] in claimed)


def _requirements(folder: Path) -> list[dict[str, Any]]:
    reports = sorted(folder.rglob("report.yaml"))
    if not reports:
        return []
    document: dict[str, Any] = yaml.safe_load(reports[-1].read_text())
    return list(document["verdict"]["requirements"])


def _named(catalog: Catalog[T], names: Sequence[str]) -> list[T]:
    try:
        return catalog.named(names)
    except UnknownNameError as error:
        raise typer.BadParameter(str(error), param_hint=f"--{catalog.word}") from None


def main(
    only: Annotated[list[str] | None, typer.Option("--mutant", help="Just these mutants.")] = None,
    just: Annotated[list[str] | None, typer.Option("--variant", help="Just these variants.")] = None,
    few: Annotated[bool, typer.Option("--selection", help="The mutants of selection.yaml and no variants.")] = False,
    shard: Annotated[str, typer.Option(help="i/n: the i-th of n parts.")] = "1/1",
    parallel: Annotated[int, typer.Option(help="Runs at the same time, a cluster each; most of a run is waiting.")] = 4,
) -> None:
    """Prove that each mutant is caught by the requirements that claim it, and that no variant is rejected."""
    part, _, parts = shard.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise typer.BadParameter(f"{shard}: is not i/n, for example 1/3", param_hint="--shard")
    only = [*(only or ()), *(selection() if few else ())]
    all_of_them = not only and not just
    mine = slice(int(part) - 1, None, int(parts))
    chosen = _named(MUTANTS, list(MUTANTS.all()) if all_of_them else only)[mine]
    permitted = _named(VARIANTS, list(VARIANTS.all()) if all_of_them else just or [])[mine]
    workdir = Path(tempfile.mkdtemp(prefix="mutants-"))
    with contextlib.ExitStack() as stack:
        clearing = stack.enter_context(contextlib.ExitStack())
        clearing.callback(shutil.rmtree, workdir)
        lanes, pool = stack.enter_context(Lanes(parallel)), stack.enter_context(ThreadPoolExecutor(parallel))

        def on_a_lane(trial: Trial) -> Proof:
            kubeconfig = lanes.free.get()
            try:
                return prove(trial, workdir, kubeconfig)
            finally:
                lanes.free.put(kubeconfig)

        # Those without a mutant run among the others: what they show is that nothing fails under their conditions.
        # Those that were registered last take longest, of what is built on what: they come first.
        trials = [*controls(chosen), *map(Trial.of_variant, permitted), *map(Trial.of_mutant, reversed(chosen))]
        runs = [pool.submit(on_a_lane, trial) for trial in trials]
        try:
            proofs = [_show(run.result()) for run in as_completed(runs)]
        finally:
            pool.shutdown(cancel_futures=True)
        if not all(proof.right for proof in proofs):
            clearing.pop_all()
            typer.echo(f"reports and logs: {workdir}")
    typer.echo(summary(proofs))
    sys.exit(0 if proofs and all(proof.right for proof in proofs) else 1)


def summary(proofs: Sequence[Proof]) -> str:
    """Return the counts of a whole proof in one line."""
    words = Counter((proof.trial.kind, proof.word) for proof in proofs)
    variants = sum(proof.trial.kind == "variant" for proof in proofs)
    killed, survived, rejected = words["mutant", "killed"], words["mutant", "SURVIVED"], words["variant", "REJECTED"]
    text = f"{killed} killed, {survived} survived; {rejected} of {variants} variants rejected"
    uncalled = words["mutant", "NOT CALLED"] + words["variant", "NOT CALLED"]
    return text + (f"; {uncalled} not called" if uncalled else "")


def _show(proof: Proof) -> Proof:
    trial = proof.trial
    claimed = f"{len(trial.ids)} requirements" if trial.kind == "reference" else ", ".join(trial.ids)
    typer.echo(f"{proof.word:11}{trial.name:26}{proof.seconds:5.0f} s  {claimed}: {trial.text}")
    for identity, outcome in proof.wrong.items():
        typer.echo(f"           {identity}: {outcome}")
    for name in proof.uncalled:
        typer.echo(f"           {name}")
    if not proof.right:
        typer.echo(proof.detail)
    return proof


if __name__ == "__main__":
    typer.run(main)
