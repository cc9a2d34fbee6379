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
CHECK_INTERVAL_SECONDS = 1.0
PERMITTED_EXITS = (Exit.CONFORMANT, Exit.HARNESS, Exit.PARTIAL)
"""Permitted exit codes of a run with a conformant implementation."""
BUSY_LOOP = "while True: pass"


def main(arguments: Sequence[str]) -> int:
    """Run the suite as the arguments say, and return the exit code."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # otherwise the loops and the run would continue
    command = [sys.executable, "-m", "grove_conformance", *options.command]
    if "--report-dir" not in command:
        command += ["--report-dir", "reports"]
    folder = Path(command[command.index("--report-dir") + 1])
    earlier_reports = set(folder.glob("*/report.yaml"))
    loops = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(options.loops)]
    run = subprocess.Popen(command)
    try:
        random_source = random.Random(options.seed)
        stop_times = sorted(random_source.uniform(0, options.within) for _ in range(options.outages))
        _stop_api_servers(run, stop_times, options.seconds, random_source)
        exit_code = run.wait()
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        if run.poll() is None:
            run.terminate()
            run.wait()
    failed_ids = [
        id for report in set(folder.glob("*/report.yaml")) - earlier_reports for id in _failed_requirements(report)
    ]
    typer.echo(f"seed {options.seed}: exit {exit_code}; failed: {', '.join(failed_ids) or 'nothing'}")
    return 0 if exit_code in PERMITTED_EXITS and not failed_ids else 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="overload", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--loops", type=int, default=8, help="busy loops beside the run")
    parser.add_argument("--outages", type=int, default=5, help="how often an API server is stopped")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each time")
    parser.add_argument("--within", type=float, default=480.0, help="seconds that the run takes, about")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    parser.add_argument("command", nargs="+", help="the command of grove-conformance, after --")
    return parser.parse_args(arguments)


def _stop_api_servers(
    run: subprocess.Popen[bytes], stop_times: Sequence[float], seconds: float, random_source: random.Random
) -> None:
    """Stop an API server at each of these moments, in seconds since the first API server was running."""
    started_at = None
    for stop_time in stop_times:
        while run.poll() is None and (
            started_at is None or time.monotonic() < started_at + stop_time or not _find_api_servers(run)
        ):
            started_at = time.monotonic() if started_at is None and _find_api_servers(run) else started_at
            time.sleep(CHECK_INTERVAL_SECONDS)
        if run.poll() is not None:
            return
        server = random_source.choice(_find_api_servers(run))
        typer.echo(f"[{stop_time:6.1f} s] stopping {API_SERVER} {server.pid} for {seconds:g} s")
        with suppress(psutil.NoSuchProcess):
            server.send_signal(signal.SIGSTOP)
            try:
                time.sleep(seconds)
            finally:
                server.send_signal(signal.SIGCONT)


def _find_api_servers(run: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the API servers of the clusters that a run has started."""
    try:
        pids = {run.pid, *(child.pid for child in psutil.Process(run.pid).children(recursive=True))}
    except psutil.NoSuchProcess:
        return []
    clusters = (c for c in list_clusters() if c.record.owner is not None and c.record.owner.pid in pids)
    return [server for cluster in clusters if (server := cluster.monitor.process(API_SERVER)) is not None]


def _failed_requirements(report: Path) -> list[str]:
    """Return the ids of the requirements that failed in a run."""
    document = yaml.safe_load(report.read_text(encoding="utf-8"))
    return [entry["id"] for entry in document["verdict"]["requirements"] if entry["outcome"] == "failed"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
