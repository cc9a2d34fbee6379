"""`make mutants`: proves that the suite sees each fault.

Each fault is armed in turn and the suite, as its own command, runs just the requirements that the fault names. A
fault that one of them does not catch is a survivor, and the exit code is 1. Beside them, the reference without any
fault has to pass under the same conditions: otherwise a failure would prove nothing.
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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Annotated, Any

import typer
import yaml

from reference_impl import faults

TIME_SCALE = "0.25"
"""Waits for what a broken implementation never does are cut short."""

RUNS = multiprocessing.get_context("forkserver")
"""Where runs come from: to import the suite anew for each would be a fifth of their CPU."""
RUNS.set_forkserver_preload(["conformance.cli", "allure_pytest.plugin", "hypothesis", "xdist.plugin"])


INVARIANT = "INV"
"""The area of requirements that every test judges."""


def controls(chosen: Sequence[faults.Fault]) -> list[faults.Fault]:
    """No fault at all, with the requirements that the chosen ones claim: a run for each area of them. Invariants are
    judged in all of these, and would select nearly every test by themselves."""
    areas: dict[str, list[str]] = {}
    for identity in sorted({identity for fault in chosen for identity in fault.caught_by}):
        areas.setdefault(identity.partition("-")[0], []).append(identity)
    if len(areas) > 1:
        areas.pop(INVARIANT, None)
    return [
        faults.Fault("", "operator", f"{area}, the reference as it is", tuple(claimed), lambda: None)
        for area, claimed in areas.items()
    ]


@dataclass(frozen=True)
class Proof:
    fault: faults.Fault
    survivors: dict[str, str]
    """Requirements that should have failed, with the outcome that they had."""
    seconds: float
    detail: str


class Lanes:
    """Clusters on which runs follow each other: bringing one up for each fault would cost as much again."""

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


def _run(arguments: Sequence[str], output: Path) -> None:
    """`python -m conformance` in a process of its own that has imported it already; ends with its exit code."""
    with output.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = ["grove-conformance", *arguments]
    runpy.run_module("conformance", run_name="__main__")


def prove(fault: faults.Fault, workdir: Path, kubeconfig: str) -> Proof:
    """Runs the suite against one fault, on a cluster that is there."""
    begin = time.monotonic()
    folder = workdir / (fault.name or f"control-{fault.caught_by[0]}")
    arguments = ["run", "--implementation", "reference", "--workers", "0", "--time-scale", TIME_SCALE]
    arguments += ["--cluster", "existing", "--kubeconfig", kubeconfig, "--report-dir", str(folder)]
    if fault.name:
        arguments += ["--fail-fast", "--set", f"fault={fault.name}"]
    for identity in fault.caught_by:
        arguments += ["--id", identity]
    output = workdir / f"{folder.name}.log"
    run = RUNS.Process(target=_run, args=(arguments, output))
    run.start()
    run.join()
    outcomes = _outcomes(folder)
    # Without a fault, what the faults claim has to pass: what fails of itself proves nothing.
    right = "failed" if fault.name else "passed"
    survivors = {i: outcomes.get(i, "not in the report") for i in fault.caught_by if outcomes.get(i) != right}
    if not fault.name:
        survivors |= {i: outcome for i, outcome in outcomes.items() if outcome == "failed"}
    # What only should be decides no verdict: then nothing that counts was judged.
    codes = (1,) if _decides(folder, fault.caught_by) else (1, 5)
    if fault.name and run.exitcode not in codes and not survivors:
        survivors = {"exit code": f"{run.exitcode}, not {codes[-1]}"}
    return Proof(fault, survivors, time.monotonic() - begin, output.read_text("utf-8")[-2000:])


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


def main(
    only: Annotated[list[str] | None, typer.Option("--fault", help="Just these faults.")] = None,
    shard: Annotated[str, typer.Option(help="i/n: the i-th of n parts.")] = "1/1",
    parallel: Annotated[int, typer.Option(help="Runs at the same time, a cluster each; most of a run is waiting.")] = 4,
) -> None:
    """Prove that each fault is seen by the requirements that claim it."""
    part, _, parts = shard.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise typer.BadParameter(f"{shard}: is not i/n, for example 1/3", param_hint="--shard")
    known = faults.registry()
    for name in only or ():
        if name not in known:
            raise typer.BadParameter(f"there is no fault {name!r}; see `grove-reference faults`", param_hint="--fault")
    chosen = [known[name] for name in only or known][int(part) - 1 :: int(parts)]
    workdir = Path(tempfile.mkdtemp(prefix="mutants-"))
    with contextlib.ExitStack() as stack:
        clearing = stack.enter_context(contextlib.ExitStack())
        clearing.callback(shutil.rmtree, workdir)
        lanes, pool = stack.enter_context(Lanes(parallel)), stack.enter_context(ThreadPoolExecutor(parallel))

        def on_a_lane(fault: faults.Fault) -> Proof:
            kubeconfig = lanes.free.get()
            try:
                return prove(fault, workdir, kubeconfig)
            finally:
                lanes.free.put(kubeconfig)

        # The faultless ones run among the others: what they show is that nothing fails under their conditions.
        # Those that were registered last take longest, of what is built on what: they come first.
        runs = [pool.submit(on_a_lane, fault) for fault in (*controls(chosen), *reversed(chosen))]
        try:
            proofs = [_show(run.result()) for run in as_completed(runs)]
        finally:
            pool.shutdown(cancel_futures=True)
        if any(proof.survivors for proof in proofs):
            clearing.pop_all()
            typer.echo(f"reports and logs: {workdir}")
    sound = not any(proof.survivors for proof in proofs if not proof.fault.name)
    survived = sum(bool(proof.survivors) for proof in proofs if proof.fault.name)
    typer.echo(f"{len(chosen) - survived} killed, {survived} survived")
    sys.exit(0 if sound and chosen and not survived else 1)


def _show(proof: Proof) -> Proof:
    fault = proof.fault
    word = "SURVIVED" if proof.survivors else "killed"
    if not fault.name:
        word = "FAILED" if proof.survivors else "passed"
    claimed = ", ".join(fault.caught_by) if fault.name else f"{len(fault.caught_by)} requirements"
    typer.echo(f"{word:9}{fault.name:26}{proof.seconds:5.0f} s  {claimed}: {fault.text}")
    for identity, outcome in proof.survivors.items():
        typer.echo(f"         {identity}: {outcome}")
    if proof.survivors:
        typer.echo(proof.detail)
    return proof


if __name__ == "__main__":
    typer.run(main)
