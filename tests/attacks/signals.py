"""Kill or stop each process of a run at each moment of the run: the run must end, and must not blame the reference.

`python -m tests.attacks.signals RESULTS [--targets etcd,worker] [--moments teardown] [--signals KILL,STOP]` plays one
short run for each cell of the table and appends its result to the file RESULTS, one JSON object on a line. Cells that
the file already has are not played again. Finally it prints the table in Markdown. The exit code is 1 if a run has
blamed the reference, has ended without a reason in one line, or has left something after `cluster prune`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import typer
import yaml

from conformance.errors import Exit
from tests.attacks.attack import CHECK_INTERVAL_SECONDS
from tests.suite.remains import processes, remains

SELECTION = ("--id", "CORE-006", "--workers", "1")
"""Two scenes, which take 4 s."""
STOPPED_SECONDS = 12.0
"""Seconds for which a process is stopped: more than the 10 s of silence that count as an outage."""
LIMIT = 240.0
"""Seconds that a run may take. Without a signal, it takes 14 s."""
POLL_INTERVAL = 0.01

MOMENTS = {
    "cluster starting": '"phase":"bringing the cluster up"',
    "installation": '"phase":"installing CRDs and webhooks"',
    "first scene": '"phase":"ready"',
    "in mid-run": '"event":"test-started".*"test":"resources/',
    "teardown": '"event":"test-finished".*"test":"resources/',
    "report": '"event":"run-finished"',
}
"""Maps a moment to a pattern of the first line of the run's ledger that belongs to the moment."""
TARGETS = {
    "controlling process": "-m conformance run",
    "worker": "sys.stdin.readline",
    "supervisor": "supervisor.py .* operator",
    "owner watch": "conformance.cluster.owner_watch",
    "etcd": r"\S*/etcd ",
    "kube-apiserver": r"\S*/kube-apiserver ",
    "kube-controller-manager": r"\S*/kube-controller-manager ",
    "kube-scheduler": r"\S*/kube-scheduler ",
    "kwok-controller": r"\S*/kwok-controller ",
    "startup-order": "conformance.cluster.kubelet_sim",
    "operator": r"\S+ -m reference_impl operator",
    "gang scheduler": r"\S+ -m reference_impl scheduler",
}
"""Maps a process to a pattern of its command line. A pattern that begins with a program matches at the start."""
IMPLEMENTATION = ("supervisor", "operator", "gang scheduler")


def exists(target: str, moment: str) -> bool:
    """Return whether a run has such a process at this moment."""
    if moment == "report":
        return target == "controlling process"
    return moment != "cluster starting" or target not in IMPLEMENTATION


@dataclass(frozen=True)
class Cell:
    """The result of one run. `reason` is the line with which the run explains that there is no verdict."""

    target: str
    moment: str
    signal: str
    hit: bool
    exit: int
    seconds: float
    verdict: str
    reason: str
    remains: list[str]

    @property
    def problem(self) -> str:
        """Return what is wrong with the result; empty if nothing is."""
        if self.remains:
            return f"{len(self.remains)} left"
        if self.exit == Exit.CONFORMANT or (self.target == "controlling process" and self.exit == -signal.SIGKILL):
            return ""
        if self.exit != Exit.HARNESS:
            return f"exit {self.exit}" if self.exit >= 0 else f"signal {-self.exit}"
        return "" if self.reason else "no reason"

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the place of the result in the table."""
        return self.target, self.moment, self.signal


def target_processes(state: Path, target: str) -> list[psutil.Process]:
    """Return the processes of a run that are such a target, in the order in which they were started."""
    pattern = re.compile(TARGETS[target])
    find = pattern.match if TARGETS[target].startswith("\\S") else pattern.search
    matching = [process for process, command in processes(state) if find(command)]
    return sorted(matching, key=lambda process: process.create_time())


def play(target: str, moment: str, name: str, folder: Path) -> Cell:
    """Play one run, and send the signal as soon as the moment has begun and the process exists."""
    state, output, start = folder / "state", folder / "terminal.txt", time.monotonic()
    environment = os.environ | {"GROVE_CONFORMANCE_STATE": str(state)}
    command = [sys.executable, "-m", "conformance"]
    arguments = ["run", "--implementation", "reference", *SELECTION, "--report-dir", str(folder / "reports")]
    with output.open("wb") as file:
        run = subprocess.Popen(
            [*command, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
        hit = _send_when_due(run, state, target, moment, signal.Signals[f"SIG{name}"], folder)
        _wait(lambda: run.poll() is not None, start + LIMIT)
        if run.poll() is None:
            run.kill()
        code, seconds = run.wait(), time.monotonic() - start
    _wait(lambda: not remains(state), time.monotonic() + STOPPED_SECONDS)
    subprocess.run([*command, "cluster", "prune"], env=environment, check=False, capture_output=True)
    report = next(folder.glob("reports/*/report.yaml"), None)
    verdict = yaml.safe_load(report.read_text())["verdict"] if report else {}
    remaining, reason = remains(state), _reason(output.read_text("utf-8", "replace"))
    return Cell(target, moment, name, hit, code, round(seconds, 1), verdict.get("result", ""), reason, remaining)


def _send_when_due(
    run: subprocess.Popen[bytes], state: Path, target: str, moment: str, number: signal.Signals, folder: Path
) -> bool:
    """Send the signal, and let a stopped process continue later. Return False if the run has ended before."""
    pattern = re.compile(MOMENTS[moment])
    targets: list[psutil.Process] = []

    def is_due() -> bool:
        if not targets and any(pattern.search(file.read_text()) for file in folder.glob("reports/*/ledger/run.jsonl")):
            targets.extend(target_processes(state, target))
        return bool(targets) or run.poll() is not None

    _wait(is_due, time.monotonic() + LIMIT, POLL_INTERVAL)
    if not targets:
        return False
    try:
        targets[0].send_signal(number)
    except psutil.NoSuchProcess:
        return False
    if number == signal.SIGSTOP:
        _wait(lambda: not targets[0].is_running(), time.monotonic() + STOPPED_SECONDS)
        if targets[0].is_running():
            targets[0].send_signal(signal.SIGCONT)
    return True


def _wait(condition: Callable[[], object], deadline: float, interval: float = CHECK_INTERVAL_SECONDS) -> None:
    while not condition() and time.monotonic() < deadline:
        time.sleep(interval)


def _reason(terminal: str) -> str:
    """Return the line of the terminal that explains a harness error; empty if there is none."""
    if "Traceback" in terminal:
        return ""
    lines = [line.strip() for line in terminal.splitlines() if "harness error" in line or "grove-conformance: " in line]
    return lines[0][:200] if lines else ""


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines of the table: for each process and signal, the verdict and the seconds at each moment; a dash
    where there is no such process, and nothing where no run was played."""
    yield "| process | signal | " + " | ".join(MOMENTS) + " |"
    yield "|---|---|" + "---|" * len(MOMENTS)
    by_key = {cell.key: cell for cell in cells}
    for target in TARGETS:
        for name in ("KILL", "STOP"):
            texts = [_cell_text(target, moment, by_key.get((target, moment, name))) for moment in MOMENTS]
            yield f"| {target} | {name} | " + " | ".join(texts) + " |"


def _cell_text(target: str, moment: str, cell: Cell | None) -> str:
    if cell is None:
        return "" if exists(target, moment) else "–"
    if not cell.hit:
        return "–"
    return f"**{cell.problem}**" if cell.problem else f"{cell.verdict or 'no report'}, {cell.seconds:.0f} s"


def main(arguments: Sequence[str]) -> int:
    """Play the cells that the arguments name, and return the exit code."""
    parser = argparse.ArgumentParser(prog="signals", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path)
    for option, names in (("targets", list(TARGETS)), ("moments", list(MOMENTS)), ("signals", ["KILL", "STOP"])):
        parser.add_argument(f"--{option}", type=lambda text: text.split(","), default=names)
    options = parser.parse_args(arguments)
    options.results.touch()
    cells = [Cell(**json.loads(line)) for line in options.results.read_text().splitlines()]
    played = {cell.key for cell in cells}
    for moment in options.moments:
        for target in options.targets:
            for name in options.signals:
                if (target, moment, name) not in played and exists(target, moment):
                    folder = options.results.absolute().parent / f"{target}-{moment}-{name}".replace(" ", "-")
                    folder.mkdir()
                    cells.append(play(target, moment, name, folder))
                    if not cells[-1].problem:
                        shutil.rmtree(folder)
                    with options.results.open("a") as file:
                        file.write(json.dumps(asdict(cells[-1])) + "\n")
    for line in table(cells):
        typer.echo(line)
    return 1 if any(cell.problem for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
