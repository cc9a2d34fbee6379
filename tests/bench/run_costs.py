"""`python -m tests.bench.run_costs [OPTION]… -- run …`: the CPU seconds of a run, by program.

The table in docs/design.md, section "Costs", contains the results. Each run has its own state folder, and
every process of the run has that folder in its environment. CPU time after the last check of a process, that is, in its
last half second, is not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import psutil

STATE = "GROVE_CONFORMANCE_STATE"
CHECK_INTERVAL = 0.5
PYTHON = {
    "reference_impl operator": "the reference's operator",
    "reference_impl scheduler": "the reference's gang scheduler",
    "import sys;exec": "workers of the suite",
    "grove-conformance run": "the command",
    "grove_conformance.start": "owner watch and startup order",
}
"""Substring of a Python process's command line → the name to show for the program."""


def program(arguments: list[str]) -> str:
    """Return the name of a process in the table."""
    name, line = Path(arguments[0]).name, " ".join(arguments)
    return next((label for part, label in PYTHON.items() if part in line), name) if "python" in line else name


class Costs:
    """The CPU time of all processes that have a state folder in their environment, as of the last check of each
    process."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._programs: dict[psutil.Process, str] = {}
        """The program of each known process, or an empty string if the process does not belong to the run."""
        self._seconds: dict[psutil.Process, float] = {}

    def record(self) -> None:
        """Record the CPU time of each process of the run."""
        for process in psutil.process_iter():
            with suppress(psutil.Error, IndexError):
                if process not in self._programs:
                    of_run = any(self._state in value for value in process.environ().values())
                    self._programs[process] = program(process.cmdline()) if of_run else ""
                if self._programs[process]:
                    times = process.cpu_times()
                    self._seconds[process] = times.user + times.system

    def by_program(self) -> list[tuple[str, float]]:
        """Return the CPU seconds of each program, the largest first."""
        sums: dict[str, float] = defaultdict(float)
        for process, seconds in self._seconds.items():
            sums[self._programs[process]] += seconds
        return sorted(sums.items(), key=lambda entry: -entry[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", help="State folder of the run, with a short path; a temporary one by default.")
    parser.add_argument("arguments", nargs="+", help="Arguments of grove-conformance.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="run-costs-") as folder:
        state = options.state or folder
        start, costs = time.monotonic(), Costs(state)
        command = [str(Path(sys.executable).with_name("grove-conformance")), *options.arguments]
        run = subprocess.Popen(command, env=os.environ | {STATE: state})
        while run.poll() is None:
            costs.record()
            time.sleep(CHECK_INTERVAL)
    sums = costs.by_program()
    total = sum(seconds for _, seconds in sums)
    print(f"\n{time.monotonic() - start:.0f} s, {total:.0f} s of CPU")
    for label, seconds in sums:
        print(f"{seconds:8.1f} s {seconds / total:6.1%}  {label}")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
