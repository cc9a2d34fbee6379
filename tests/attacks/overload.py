"""Run the suite on an overloaded machine whose API servers stop at times: nothing may be blamed on the implementation.

`python -m tests.attacks.overload [--loops 8] [--outages 5] [--seconds 20] [--within 480] -- run …` starts
`grove-conformance run …` alongside busy loops. At random moments of the time that the run is expected to take, it stops
the API server of one of the run's clusters for some seconds. The exit code is 0 if the run ends without a verdict, or
with a verdict and no failed requirement. It is 1 if a requirement has failed or is blocked by the implementation.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import typer
import yaml

from conformance.cluster.controlplane import list_clusters
from conformance.errors import Exit

API_SERVER = "kube-apiserver"
CHECK_INTERVAL = 1.0
PERMITTED_EXITS = (Exit.CONFORMANT, Exit.HARNESS, Exit.PARTIAL)
"""Permitted exit codes of a run with a conformant implementation."""
LOOP = "while True: pass"


def main(arguments: Sequence[str]) -> int:
    """Run the suite as the arguments say, and return the exit code."""
    options = _parsed(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # otherwise the loops and the run would go on
    command = [sys.executable, "-m", "grove_conformance", *options.command]
    if "--report-dir" not in command:
        command += ["--report-dir", "reports"]
    folder = Path(command[command.index("--report-dir") + 1])
    before = set(folder.glob("*/report.yaml"))
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(options.loops)]
    run = subprocess.Popen(command)
    try:
        chance = random.Random(options.seed)
        moments = sorted(chance.uniform(0, options.within) for _ in range(options.outages))
        _stop_now_and_then(run, moments, options.seconds, chance)
        code = run.wait()
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        if run.poll() is None:
            run.terminate()
            run.wait()
    blamed = [line for report in set(folder.glob("*/report.yaml")) - before for line in _blamed(report)]
    typer.echo(f"seed {options.seed}: exit {code}; failed: {', '.join(blamed) or 'nothing'}")
    return 0 if code in PERMITTED_EXITS and not blamed else 1


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="overload", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--loops", type=int, default=8, help="busy loops beside the run")
    parser.add_argument("--outages", type=int, default=5, help="how often an API server is stopped")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each time")
    parser.add_argument("--within", type=float, default=480.0, help="seconds that the run takes, about")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    parser.add_argument("command", nargs="+", help="the command of grove-conformance, after --")
    return parser.parse_args(arguments)


def _stop_now_and_then(
    run: subprocess.Popen[bytes], moments: Sequence[float], seconds: float, chance: random.Random
) -> None:
    """Stop an API server at each of these moments, in seconds since the first API server was running."""
    start = None
    for moment in moments:
        while run.poll() is None and (start is None or time.monotonic() < start + moment or not _servers(run)):
            start = time.monotonic() if start is None and _servers(run) else start
            time.sleep(CHECK_INTERVAL)
        if run.poll() is not None:
            return
        server = chance.choice(_servers(run))
        typer.echo(f"[{moment:6.1f} s] stopping {API_SERVER} {server.pid} for {seconds:g} s")
        with suppress(psutil.NoSuchProcess):
            server.send_signal(signal.SIGSTOP)
            try:
                time.sleep(seconds)
            finally:
                server.send_signal(signal.SIGCONT)


def _servers(run: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the API servers of the clusters that a run has started."""
    try:
        pids = {run.pid, *(child.pid for child in psutil.Process(run.pid).children(recursive=True))}
    except psutil.NoSuchProcess:
        return []
    clusters = (c for c in list_clusters() if c.record.owner is not None and c.record.owner.pid in pids)
    return [server for cluster in clusters if (server := cluster.monitor.process(API_SERVER)) is not None]


def _blamed(report: Path) -> list[str]:
    """Return the ids of the requirements that failed in a run."""
    document = yaml.safe_load(report.read_text(encoding="utf-8"))
    return [entry["id"] for entry in document["verdict"]["requirements"] if entry["outcome"] == "failed"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
