"""Runs of the suite against a mutant, a variant or the unchanged reference, and the comparison of their outcome with
the trial."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue
from typing import Any, Literal

import yaml

from mutants import replacement
from mutants.trials import USUAL, Bench, Trial

FORKSERVER = multiprocessing.get_context("forkserver")
"""The context that forks runs from a process that has already imported and collected the suite. Importing and
collecting would take a third of a run's CPU time."""
FORKSERVER.set_forkserver_preload(["conformance.run.preload"])

OutcomeWord = Literal["killed", "SURVIVED", "passed", "REJECTED", "FAILED", "NOT CALLED", "NO VERDICT"]
"""The outcome of a trial. NO VERDICT: the suite or its cluster failed; the trial is run again."""
OUTCOME_WORDS: dict[str, tuple[OutcomeWord, OutcomeWord]] = {
    "mutant": ("killed", "SURVIVED"),
    "variant": ("passed", "REJECTED"),
    "reference": ("passed", "FAILED"),
}

NO_VERDICT = (None, 2, 3)
"""Exit codes of runs without a verdict: killed (None), interrupted, or a failure of the suite or its cluster."""

LANES_PER_CORE = 2
"""Concurrent runs per core. A run spends half of its time waiting, so a core has room for two runs. With more runs,
each run would be so slow that a delay caused by the mutant could not be distinguished from a delay caused by load."""

LANE_MEMORY_BYTES = 2 * 2**30
"""Bytes of memory that a lane's cluster may need at the end. The API server uses most of the memory."""


def lanes(cores: int, memory: int) -> int:
    """Return the number of runs that fit on a machine at the same time."""
    return max(1, min(LANES_PER_CORE * cores, memory // LANE_MEMORY_BYTES))


@dataclass(frozen=True)
class Proof:
    """The result of a trial's run."""

    trial: Trial
    wrong: dict[str, str]
    """Requirement id → its actual outcome, for requirements that should have had another outcome."""
    uncalled: tuple[str, ...]
    """Replacements that were never called, in which case the run proves nothing."""
    seconds: float
    detail: str
    judged: bool = True
    """Whether the run ended with a verdict, rather than being stopped by the suite, its cluster or a user."""

    @property
    def right(self) -> bool:
        """Return whether the run proves what it should."""
        return self.judged and not self.wrong and not self.uncalled

    @property
    def word(self) -> OutcomeWord:
        """The outcome in one or two words."""
        if not self.judged:
            return "NO VERDICT"
        if self.uncalled:
            return "NOT CALLED"
        return OUTCOME_WORDS[self.trial.kind][bool(self.wrong)]


class Lanes:
    """Clusters that are each used for many runs, because starting a cluster for each trial would double the cost."""

    def __init__(self, count: int, bench: Bench = USUAL) -> None:
        self._bench = bench
        self._names = [f"mutants-{os.getpid()}-{number}" for number in range(count)]
        self.free: Queue[str] = Queue()

    def __enter__(self) -> Lanes:
        try:
            with ThreadPoolExecutor(len(self._names)) as pool:
                for kubeconfig in pool.map(self._start_cluster, self._names):
                    self.free.put(kubeconfig)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        with ThreadPoolExecutor(len(self._names)) as pool:
            list(pool.map(lambda name: _conformance("cluster", "down", name), self._names))

    def _start_cluster(self, name: str) -> str:
        """Start a cluster and return its kubeconfig, which the command prints as `export KUBECONFIG=…`."""
        done = _conformance("cluster", "up", name, "--owner", str(os.getpid()), *self._bench.cluster)
        if done.returncode:
            raise RuntimeError(f"cluster {name} did not start (exit code {done.returncode}): {done.stderr}")
        return done.stdout.strip().partition("=")[2]


def _conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def _run(arguments: Sequence[str], output: Path, calls: Path, exit_code: Connection) -> None:
    """Run `python -m conformance` in a separate process that has already imported it, and send its exit code."""
    with output.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ[replacement.CALLS] = str(calls)
    sys.argv = ["grove-conformance", *arguments]
    try:
        runpy.run_module("conformance", run_name="__main__")
    except SystemExit as ended:
        exit_code.send(ended.code)
        raise


def run(trial: Trial, workdir: Path, kubeconfig: str = "") -> Proof:
    """Run a trial on an existing cluster, or on clusters that the run starts itself."""
    started_at = time.monotonic()
    folder = workdir / f"{trial.kind}-{trial.name}"
    output, calls = workdir / f"{folder.name}.log", workdir / f"{folder.name}.calls"
    # `Process.exitcode` is unreliable: when another lane starts a process, it reaps the processes that have ended, and
    # the lane that waits for one of them may miss its exit code.
    received, sent = FORKSERVER.Pipe(duplex=False)
    process = FORKSERVER.Process(target=_run, args=(_arguments(trial, folder, kubeconfig), output, calls, sent))
    process.start()
    sent.close()
    try:
        exit_code: int | None = received.recv()
    except EOFError:  # the process was killed
        exit_code = None
    except BaseException:
        process.terminate()  # the process cleans up what it has started
        raise
    finally:
        process.join()
    wrong = _wrong(trial, _requirements(folder), exit_code)
    detail = output.read_text("utf-8")[-2000:] if output.exists() else ""
    judged = exit_code not in NO_VERDICT
    return Proof(trial, wrong, _uncalled(trial, calls), time.monotonic() - started_at, detail, judged)


def _arguments(trial: Trial, folder: Path, kubeconfig: str) -> list[str]:
    arguments = ["run", "--implementation", trial.bench.implementation, "--report-dir", str(folder)]
    if trial.switches:
        arguments += ["--set", f"{trial.kind}={','.join(trial.switches)}"]
    if kubeconfig:
        arguments += ["--workers", "0", "--cluster", "existing", "--kubeconfig", kubeconfig]
        arguments += ["--time-scale", trial.time_scale]
    if trial.kind == "mutant":
        arguments += ["--fail-fast"]
    if trial.profiles or trial.whole:
        return [*arguments, *(word for profile in trial.profiles for word in ("--profile", profile))]
    # A variant that runs alone may show its difference only in the requirements from which it is exempt.
    selected_ids = trial.ids if trial.armed else (*trial.ids, *trial.exempt)
    return [*arguments, *(word for identity in selected_ids for word in ("--id", identity))]


def _wrong(trial: Trial, requirements: Sequence[dict[str, Any]], exitcode: int | None) -> dict[str, str]:
    """Return requirement id → outcome for the requirements whose outcome differs from the outcome that the trial
    requires."""
    outcomes = {entry["id"]: entry["outcome"] for entry in requirements}
    wrong = {i: outcomes.get(i, "not in the report") for i in trial.ids if outcomes.get(i) != trial.right(i)}
    if trial.kind != "mutant":
        # Any failed requirement counts here. In whole profiles, a requirement that could not be judged also counts.
        bad = ("failed", "blocked") if trial.profiles or trial.whole else ("failed",)
        return wrong | {i: outcome for i, outcome in outcomes.items() if outcome in bad and i not in trial.exempt}
    # A SHOULD or a seed does not decide the verdict. If nothing else was selected, the run is partial or has judged
    # nothing.
    trial_requirements = [entry for entry in requirements if entry["id"] in trial.ids]
    decides = any(entry["level"] == "MUST" and not entry.get("seed") for entry in trial_requirements)
    codes = (1,) if decides else (1, 5, 6)
    if exitcode not in codes and not wrong:
        return {"exit code": f"{exitcode}, not {codes[-1]}"}
    return wrong


def _uncalled(trial: Trial, calls: Path) -> tuple[str, ...]:
    """Return the replacements of a mutant or variant that its run never called."""
    if trial.kind == "reference":
        return ()
    idle = replacement.uncalled(calls)
    return ("nothing was replaced",) if idle is None else tuple(sorted(idle))


def _requirements(folder: Path) -> list[dict[str, Any]]:
    reports = sorted(folder.rglob("report.yaml"))
    if not reports:
        return []
    document: dict[str, Any] = yaml.load(reports[-1].read_text("utf-8"), yaml.CSafeLoader)
    return list(document["verdict"]["requirements"])
