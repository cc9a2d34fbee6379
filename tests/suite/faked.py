"""Conformance runs without a cluster: real pytest, real workers, and a fake environment. `python faked.py '{…}'`
executes one run."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

CONFTEST = """
import contextlib, os, signal
from conformance.errors import HarnessError
from conformance.history.log import Log
from conformance.history.query import History
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.scene import SceneEnded, Step

class Case:
    def __init__(self, running):
        self.running = running
        self.log, self.steps, self.markers, self.revision = Log(), {}, {}, 0
        self.neighbor = None
        self.history = History(self.log, "fake")
        self.checks = running.checks
        self.expect, self.holds = running.checks.expect, running.checks.holds
    def until(self, ids, what, result):
        if result is not True:
            raise self.running.checks.fail(ids, what, what, result, at=1.5)
        self.running.checks.passed(ids, what)
    def record(self, resource, name):
        self.revision += 1
        about = dict(namespace="fake", name=name, uid=name, version=str(self.revision), raw=b"{}")
        self.log.append("ADDED", resource, **about)
    def mark(self, step, unmet=""):
        self.steps[step] = Step.now(step, self.history, unmet)
        self.after_step()
    def settle(self, step, result):
        self.mark(step, "" if result is True else result)
    def wait_for(self, step, result):
        if result is not True:
            raise SceneEnded(step, f"not seen within 1 s: {step}\\nnearest: {result}", 1.5)
        self.mark(step)
    def refused(self):
        raise self.running.checks.broken("a set is accepted", "accepted", "refused")

class FakeEnvironment:
    def __init__(self, settings, worker, ledger):
        self.mark = settings.folder / f"closed-{worker}"
        OPENING
    @contextlib.contextmanager
    def play(self, running):
        running.namespace = "fake"
        def keep(checks, tests):
            running.bundle = self.mark.parent / "bundles" / "one"
            running.bundle.mkdir(parents=True, exist_ok=True)
            (running.bundle / "timeline.txt").write_text("a line")
        running.keep = keep
        yield Case(running)
        if running.has_problem and not running.bundle:
            keep(running.checks.recorded, [running.test])
    def close(self):
        self.mark.write_text("")

def pytest_conformance_environment(config):
    return FakeEnvironment
"""


LONGEST = 240.0
"""The most seconds that a run may take, also on a busy machine. Most runs take one second."""

FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["tests.suite.forked"])
"""Forks runs from a process that has already imported their modules. The process finds this one in its working
directory, the root folder of the project; elsewhere each run imports all by itself."""


@dataclass
class RunResult:
    """The result of a run."""

    exit: int
    out: str
    err: str
    folder: Path

    @property
    def report(self) -> dict[str, Any]:
        content: dict[str, Any] = yaml.safe_load((self.folder / "report.yaml").read_text())
        return content

    @property
    def checks(self) -> list[tuple[str, str]]:
        """Return the ids and outcomes of all checks, in order."""
        lines = [
            json.loads(line)
            for path in (self.folder / "ledger").glob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        return [(line["id"], line["outcome"]) for line in lines if line["event"] == "check"]

    @property
    def allure(self) -> list[str]:
        """Return the statuses of all tests in the results for Allure, sorted."""
        return sorted(json.loads(p.read_text())["status"] for p in (self.folder / "allure").glob("*-result.json"))

    @property
    def outcomes(self) -> dict[str, str]:
        return {r["id"]: r["outcome"] for r in self.report["verdict"]["requirements"]}


@dataclass
class Faked:
    """A folder with fake conformance tests and a registry of their requirements, AA-001 … AA-nnn in profile core."""

    folder: Path
    extra: dict[str, Any] = field(default_factory=dict)

    def write(self, tests: str, *, ids: int = 2, opening: str = "pass"):
        entries = [
            {
                "id": f"AA-{number:03d}",
                "level": "MUST",
                "basis": "document",
                "text": f"It does the right thing number {number}.",
                "source": ["X-01"],
                "since": "v0",
                "roles": ["operator"],
            }
            for number in range(1, ids + 1)
        ]
        registry = self.folder / "registry"
        registry.mkdir(exist_ok=True)
        for profile, requirements in {"core": entries, "gang": []}.items():
            document = {
                "apiVersion": "conformance.grove.io/v1alpha1",
                "kind": "Requirements",
                "profile": profile,
                "text": f"The {profile}.",
                "requirements": requirements,
            }
            (registry / f"{profile}.yaml").write_text(yaml.safe_dump(document))
        folder = self.folder / "tests"
        folder.mkdir(exist_ok=True)
        (folder / "conftest.py").write_text(CONFTEST.replace("OPENING", opening))
        head = "import os, signal, time\nfrom conformance.suite.registry.requirement import requirements\n"
        (folder / "test_fake.py").write_text(head + textwrap.dedent(tests))

    def command(self, **changes: Any) -> list[str]:
        options = {
            "run": "r1",
            "directory": str(self.folder / "run"),
            "implementation": "fake",
            "tests": str(self.folder / "tests"),
            "registry": str(self.folder / "registry"),
            "workers": 0,
            "reproduce": "grove-conformance run",
            **changes,
        }
        return [sys.executable, __file__, json.dumps(options)]

    def environment(self) -> dict[str, str]:
        return os.environ | {"GROVE_CONFORMANCE_STATE": str(self.folder / "state"), "PYTHONWARNINGS": "ignore"}

    def run(self, **changes: Any) -> RunResult:
        """Execute a run in a forked process."""
        done = run_forked(exit_code, self.command(**changes)[-1], self.folder, self.environment())
        return RunResult(done.returncode, done.stdout, done.stderr, self.folder / "run")


def run_forked(
    function: Callable[[Any], NoReturn], argument: object, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Call a function in a process of its own, forked from a process that has already imported its modules. The process
    works in the folder, which gets the files `stdout` and `stderr`."""
    out, err = folder / "stdout", folder / "stderr"
    arguments = (function, argument, {**environment}, folder, out, err)
    process = FORKSERVER.Process(target=_call, args=arguments)
    process.start()
    process.join(LONGEST)
    if process.is_alive():
        process.kill()
        raise TimeoutError(f"the process has not ended after {LONGEST:g} s: {err.read_text()}")
    assert process.exitcode is not None
    return subprocess.CompletedProcess([], process.exitcode, out.read_text(), err.read_text())


def _call(
    function: Callable[[Any], NoReturn],
    argument: object,
    environment: dict[str, str],
    folder: Path,
    out: Path,
    err: Path,
) -> None:
    for number, path in ((1, out), (2, err)):
        with path.open("w") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[0] = str(Path(__file__).parent)
    warnings.simplefilter("ignore")
    function(argument)


def main(text: str) -> int:
    from rich.console import Console

    from conformance.run import launch, watchdog
    from conformance.suite.outcomes import ledger
    from conformance.suite.settings import RunSettings

    options = json.loads(text)
    watchdog.MAX_IDLE_SECONDS, watchdog.END_SECONDS = options.pop(
        "limits", (watchdog.MAX_IDLE_SECONDS, watchdog.END_SECONDS)
    )
    expected = tuple(ledger.ExpectedFailure(**e) for e in options.pop("expected", ()))
    for name in ("profiles", "ids", "skip", "only", "part", "pytest_options", "roles", "features"):
        if name in options:
            options[name] = tuple(options[name])
    settings = RunSettings(expected={failure.id: failure.reason for failure in expected}, **options)
    implementation = ledger.Implementation(
        name="fake",
        version="1",
        roles=settings.roles,
        features=settings.features,
        digest="",
        expected_failures=expected,
    )
    plan = launch.collect(settings)
    out, err = Console(file=sys.stdout, width=100), Console(file=sys.stderr, soft_wrap=True)
    return launch.run(settings, plan, implementation, suite=("0", "sha256:0"), environment={}, console=out, err=err)


def exit_code(options: str) -> NoReturn:
    """Execute a run, and end this process with the exit code of the run."""
    from conformance.cli import run_despite_output_errors

    sys.exit(run_despite_output_errors(lambda: main(options)))


if __name__ == "__main__":
    exit_code(sys.argv[1])
