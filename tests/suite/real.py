"""Runs on a real cluster, each with its own state folder."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from faked import Faked, RunResult

from tests.suite.remains import remains

WAITING = """
    @requirements("AA-001")
    def test_one(case):
        case.expect("AA-001", "x", 1, 1)

    @requirements("AA-002")
    def test_two(case):
        open(os.environ["MARK"], "w").close()
        case.until("AA-002", "what never comes", lambda view: None, timeout=20)
"""


class RealRun:
    """A run on a real cluster, with its own state folder. Its second test waits, unless other tests are written."""

    def __init__(self, faked: Faked) -> None:
        self.faked, self.mark, self.state = faked, faked.folder / "waiting", faked.folder / "state"
        self.write(WAITING)
        self.process: subprocess.Popen[str] | None = None

    def write(self, tests: str, ids: int = 2) -> None:
        self.faked.write(tests, ids=ids)
        (self.faked.folder / "tests" / "conftest.py").unlink()

    def start(self, **changes: object) -> None:
        self.process = subprocess.Popen(
            self.faked.command(implementation="blank", **changes),
            env=self.faked.environment() | {"MARK": str(self.mark)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: self.mark.exists() or self.process is None or self.process.poll() is not None, 240)
        assert self.mark.exists(), self.process.communicate()

    def end(self) -> RunResult:
        assert self.process is not None
        out, err = self.process.communicate(timeout=60)
        return RunResult(self.process.returncode, out, err, self.faked.folder / "run")

    def run(self, timeout: float = 240, **changes: object) -> RunResult:
        """Execute a whole run, of the blank implementation unless another one is given."""
        done = subprocess.run(
            self.faked.command(**{"implementation": "blank", "workers": 1} | changes),
            env=self.faked.environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return RunResult(done.returncode, done.stdout, done.stderr, self.faked.folder / "run")

    def worker(self) -> int:
        """Return the pid of the worker that runs the waiting test."""
        for events in self.ledger():
            if any(e["event"] == "test-started" and "test_two" in e["test"] for e in events):
                return int(next(e["pid"] for e in events if e["event"] == "worker-started"))
        raise AssertionError("no worker runs the waiting test")

    def ledger(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the events of each file of the ledger."""
        for path in (self.faked.folder / "run" / "ledger").glob("*.jsonl"):
            yield [json.loads(line) for line in path.read_text().splitlines()]

    def component(self, name: str) -> psutil.Process:
        """Return the process of a component of the run's cluster."""
        pids = [int(text.split()[0]) for text in self.remains() if text.split()[0].isdigit()]
        return next(p for p in map(psutil.Process, pids) if Path(p.cmdline()[0]).name.startswith(name))

    def remains(self) -> list[str]:
        """Return the processes with this run's state folder in their environment, and the folders of clusters in it."""
        return remains(self.state)


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
