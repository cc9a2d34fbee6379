"""However a run on a real cluster ends, nothing of it is left: no process, no cluster, no port."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from faked import Faked, Ran

pytestmark = pytest.mark.cluster

WAITING = """
    @requirements("AA-001")
    def test_one(case):
        case.expect("AA-001", "x", 1, 1)

    @requirements("AA-002")
    def test_two(case):
        open(os.environ["MARK"], "w").close()
        case.until("AA-002", "what never comes", lambda view: None, timeout=20)
"""


AFTERWARDS = """
    @requirements("AA-003")
    def test_two_more(case):
        case.nodes("dgx-h100", 1)
        case.expect("AA-003", "x", 1, 1)
"""


class Real:
    """A run on a real cluster that waits in its second test, with a state folder of its own."""

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
        wait_for(lambda: self.mark.exists() or self.process is None or self.process.poll() is not None, 90)
        assert self.mark.exists(), self.process.communicate()

    def end(self) -> Ran:
        assert self.process is not None
        out, err = self.process.communicate(timeout=60)
        return Ran(self.process.returncode, out, err, self.faked.folder / "run")

    def worker(self) -> int:
        """The process that runs the waiting test."""
        for events in self.ledger():
            if any(e["event"] == "test-started" and "test_two" in e["test"] for e in events):
                return int(next(e["pid"] for e in events if e["event"] == "worker-started"))
        raise AssertionError("no worker runs the waiting test")

    def ledger(self) -> Iterator[list[dict[str, Any]]]:
        """The events of each writer."""
        for path in (self.faked.folder / "run" / "ledger").glob("*.jsonl"):
            yield [json.loads(line) for line in path.read_text().splitlines()]

    def component(self, name: str) -> psutil.Process:
        """The process of a component of the run's cluster."""
        return next(p for p in map(psutil.Process, pids(self)) if Path(p.cmdline()[0]).name.startswith(name))

    def left(self) -> list[str]:
        """Processes with our state folder in their environment, and folders of clusters."""
        found = [str(path) for path in self.state.glob("*/clusters/*") if path.is_dir()]
        for process in psutil.process_iter():
            try:
                environment = process.environ()
            except psutil.Error:
                continue
            if environment.get("GROVE_CONFORMANCE_STATE") == str(self.state) and process.pid != os.getpid():
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        return found


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.fixture
def real(faked: Faked) -> Iterator[Real]:
    made = Real(faked)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.communicate()
    subprocess.run(
        [sys.executable, "-m", "conformance.cli", "cluster", "prune"], env=faked.environment(), capture_output=True
    )


@pytest.mark.parametrize("workers", [0, 1])
def test_control_c(real: Real, workers: int) -> None:
    real.start(workers=workers)
    assert real.process is not None
    real.process.send_signal(signal.SIGINT)
    ran = real.end()
    assert ran.exit == 2, ran.err
    assert ran.outcomes == {"AA-001": "passed", "AA-002": "not-run"}
    assert real.left() == []


def test_a_killed_worker(real: Real) -> None:
    real.start(workers=1)
    os.kill(real.worker(), signal.SIGKILL)
    ran = real.end()
    assert ran.exit == 3, ran.err
    assert ran.outcomes == {"AA-001": "passed", "AA-002": "harness-error"}
    assert "died during test_fake.py::test_two" in ran.out
    assert real.left() == []


def test_a_killed_suite(real: Real) -> None:
    """The worker notices that it is alone and clears up; prune has nothing left to do, or does it."""
    real.start(workers=1)
    assert real.process is not None
    real.process.kill()
    real.end()
    wait_for(lambda: not real.left(), 20)
    assert real.left() == []


def test_a_killed_api_server_is_not_the_implementations_fault(real: Real) -> None:
    real.start(workers=1)
    real.component("kube-apiserver").kill()
    ran = real.end()
    assert ran.exit == 3, ran.out
    assert ran.outcomes["AA-002"] == "harness-error"
    assert re.search("the cluster is not well: .*apiserver", ran.out)
    assert real.left() == []


@pytest.mark.parametrize("name", ["kwok", "etcd"])
def test_a_hang_that_passes_is_not_the_implementations_fault(real: Real, name: str) -> None:
    """The wait that it touched ends at once, and has no verdict; the next test begins when it is over."""
    real.write(WAITING + AFTERWARDS, ids=3)
    real.start(workers=1)
    hung = real.component(name)
    hung.suspend()
    wait_for((real.faked.folder / "run" / "bundles").exists, 15)
    hung.resume()
    ran = real.end()
    assert ran.exit == 3, ran.out + ran.err
    assert ran.outcomes == {"AA-001": "passed", "AA-002": "harness-error", "AA-003": "passed"}
    assert re.search(rf"the cluster is not well: {name}\S* is stopped", ran.out)
    assert next(t["seconds"]["call"] for t in ran.report["run"]["tests"] if t["outcome"] == "harness-error") < 10
    assert real.left() == []


def test_a_suite_that_was_stopped_judges_nothing_by_the_time_that_it_missed(real: Real) -> None:
    real.write(WAITING + AFTERWARDS, ids=3)
    real.start(workers=1)
    worker = psutil.Process(real.worker())
    worker.suspend()
    wait_for(lambda: False, 25)  # longer than the test's wait
    worker.resume()
    ran = real.end()
    assert ran.exit == 3, ran.out + ran.err
    assert ran.outcomes == {"AA-001": "passed", "AA-002": "harness-error", "AA-003": "passed"}
    assert "the cluster is not well: the suite did not run itself, for 2" in ran.out
    assert real.left() == []


def pids(real: Real) -> list[int]:
    return [int(text.split()[0]) for text in real.left() if text.split()[0].isdigit()]


BREAKING = """
    import psutil
    import pytest

    def broken(case, id, name):
        driver = case.roles._driver.cluster
        for file in driver.directory.rglob(f"{name}*.pid"):
            psutil.Process(int(file.read_text())).kill()
        case.until(id, "what never comes", lambda view: None, timeout=300)

    @requirements("AA-001")
    def test_one(case):
        broken(case, "AA-001", "etcd")

    @requirements("AA-002")
    def test_two(case):
        case.nodes("dgx-h100", 1)
        case.expect("AA-002", "x", 1, 1)

    @requirements("AA-003")
    def test_three(case):
        broken(case, "AA-003", "kwok")

    @pytest.mark.parametrize("number", range(20))
    @requirements("AA-004")
    def test_later(case, number):
        case.expect("AA-004", "x", 1, 1)
"""


def test_a_broken_cluster_is_replaced_and_the_second_one_is_not(real: Real) -> None:
    real.write(BREAKING, ids=4)
    done = subprocess.run(
        real.faked.command(implementation="blank", workers=1),
        env=real.faked.environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    ran = Ran(done.returncode, done.stdout, done.stderr, real.faked.folder / "run")
    assert ran.exit == 3, ran.out + ran.err
    harness = dict.fromkeys(("AA-001", "AA-003", "AA-004"), "harness-error")
    assert ran.outcomes == {**harness, "AA-002": "passed"}
    assert "the cluster is not well: etcd does not run" in ran.out
    given_up = "given up: the cluster is not well: kwok-controller does not run; 2 clusters broke"
    assert ran.err.count("given up") == ran.err.count(given_up) == 1
    assert all(t["seconds"].get("call", 0) < 10 for t in ran.report["run"]["tests"])
    assert ran.err.count("test_later") <= 2, ran.err
    assert real.left() == []


def test_an_implementation_that_deletes_nodes_is_named(real: Real, tmp_path: Path) -> None:
    (tmp_path / "reaper.py").write_text(
        """\
import sys, time
from kubernetes import client, config
config.load_kube_config(sys.argv[1])
api = client.CoreV1Api()
api.api_client.user_agent = "reaper/1.0"
print("ready", flush=True)
while True:
    for node in api.list_node().items:
        try:
            api.delete_node(node.metadata.name)
        except client.ApiException:
            pass
    time.sleep(0.5)
"""
    )
    (tmp_path / "reaper.yaml").write_text(
        f"""\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: reaper
version: "0"
roles: [operator, gang-scheduler]
schedulerName: nobody
install:
  crds: ["${{project}}/reference_impl/crds"]
processes:
  operator:
    argv: ["${{python}}", "{tmp_path}/reaper.py", "${{kubeconfig}}"]
    ready: {{log: ready}}
  gang-scheduler:
    argv: ["${{python}}", "-uc", "import signal; print('ready'); signal.pause()"]
    ready: {{log: ready}}
"""
    )
    real.write(
        """
        @requirements("AA-001")
        def test_one(case):
            case.nodes("dgx-h100", 2)
            case.until("AA-001", "what never comes", lambda view: None, timeout=300)
        """,
        ids=1,
    )
    done = subprocess.run(
        real.faked.command(implementation=str(tmp_path / "reaper.yaml"), workers=0),
        env=real.faked.environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    ran = Ran(done.returncode, done.stdout, done.stderr, real.faked.folder / "run")
    assert ran.exit == 1, ran.out + ran.err
    assert ran.outcomes == {"AA-001": "failed"}
    assert re.search(r'of the test was deleted by the client "reaper/1\.0" \(user ', ran.out)
    assert real.left() == []


def test_an_implementation_that_exits_at_once(real: Real, tmp_path: Path) -> None:
    descriptor = tmp_path / "crasher.yaml"
    descriptor.write_text(
        """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: crasher
version: "0"
roles: [operator, gang-scheduler]
schedulerName: nobody
install:
  crds: ["${project}/reference_impl/crds"]
processes:
  operator: &process
    argv: ["${python}", "-c", "print('no such flag'); raise SystemExit(3)"]
    ready: {http: "http://127.0.0.1:${port.health}/readyz"}
  gang-scheduler: *process
"""
    )
    done = subprocess.run(
        real.faked.command(implementation=str(descriptor), workers=1),
        env=real.faked.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    ran = Ran(done.returncode, done.stdout, done.stderr, real.faked.folder / "run")
    assert ran.exit == 1, ran.err
    assert set(ran.outcomes.values()) == {"blocked"}
    assert ran.out.count("exited with code 3 before it was ready") == 1
    assert "no such flag" in (ran.folder / "logs" / "operator.log").read_text()
    assert "Traceback" not in ran.out + ran.err
    assert real.left() == []


def test_an_implementation_that_dies_fails_its_test_at_once_and_is_revived(real: Real, tmp_path: Path) -> None:
    """Serves a health page until a file appears, then exits."""
    (tmp_path / "fragile.py").write_text(
        """\
import http.server, os, sys, threading, time
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
print("panic: cannot go on")
os._exit(7)
"""
    )
    deadly = tmp_path / "deadly"
    (tmp_path / "fragile.yaml").write_text(
        f"""\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: fragile
version: "0"
roles: [operator, gang-scheduler]
schedulerName: nobody
install:
  crds: ["${{project}}/reference_impl/crds"]
processes:
  operator:
    argv: ["${{python}}", "{tmp_path}/fragile.py", "${{port.health}}", "{deadly}"]
    ready: {{http: "http://127.0.0.1:${{port.health}}/readyz"}}
  gang-scheduler:
    argv: ["${{python}}", "{tmp_path}/fragile.py", "${{port.health}}", "{tmp_path}/never"]
    ready: {{http: "http://127.0.0.1:${{port.health}}/readyz"}}
"""
    )
    real.faked.write(
        f"""
        DEADLY = {str(deadly)!r}

        @requirements("AA-001")
        def test_one(case):
            open(DEADLY, "w").close()
            case.until("AA-001", "what never comes", lambda view: None, timeout=50)

        @requirements("AA-002")
        def test_two(case):
            case.expect("AA-002", "failures so far", 1, len(case.roles._driver.failures()))
            case.until("AA-002", "nothing dies any more", lambda view: True)
        """
    )
    conftest = real.faked.folder / "tests" / "conftest.py"
    conftest.write_text(
        "import os, pytest\n@pytest.fixture(autouse=True)\ndef alive():\n    yield\n"
        f"    os.path.exists({str(deadly)!r}) and os.unlink({str(deadly)!r})\n"
    )
    done = subprocess.run(
        real.faked.command(implementation=str(tmp_path / "fragile.yaml"), workers=1),
        env=real.faked.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    ran = Ran(done.returncode, done.stdout, done.stderr, real.faked.folder / "run")
    assert ran.exit == 1, ran.err + ran.out
    assert ran.outcomes == {"AA-001": "failed", "AA-002": "passed"}
    assert "fragile: the operator exited with code 7" in ran.out
    assert "panic: cannot go on" in ran.out
    first = ran.report["run"]["tests"][0]
    assert first["seconds"]["call"] < 10
    bundle = ran.folder / ran.report["verdict"]["requirements"][0]["failures"][0]["bundle"]
    assert "panic" in (bundle / "logs" / "operator.log").read_text()
    assert {"history.jsonl", "timeline.txt", "objects.yaml", "checks.yaml", "reproduce.txt"} <= {
        p.name for p in bundle.iterdir()
    }
    assert real.left() == []
