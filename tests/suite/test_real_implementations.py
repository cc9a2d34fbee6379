"""Tests that a run on a real cluster reports how an implementation misbehaves, and leaves nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from real import RealRun

pytestmark = pytest.mark.cluster

DESCRIPTOR = """\
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: {name}
version: "0"
roles: [operator, gang-scheduler]
schedulerName: nobody
install:
  crds: ["${{project}}/reference_impl/crds"]
processes:
  operator: {operator}
  gang-scheduler: {scheduler}
"""
IDLE_PROCESS = """{argv: ["${python}", "-uc", "import signal; print('ready'); signal.pause()"], ready: {log: ready}}"""


def write_descriptor(folder: Path, name: str, operator: str, scheduler: str) -> str:
    """Write a descriptor with these two processes and return its path."""
    path = folder / f"{name}.yaml"
    path.write_text(DESCRIPTOR.format(name=name, operator=operator, scheduler=scheduler))
    return str(path)


@pytest.mark.thorough  # a whole run with the attack of the same name
def test_an_implementation_that_deletes_nodes_is_named(real_run: RealRun, tmp_path: Path) -> None:
    (tmp_path / "reaper.py").write_text(
        """\
import sys, time
from kubernetes import client, config
config.load_kube_config(sys.argv[1])
api = client.CoreV1Api()
api.api_client.user_agent = "grove-conformance-x/1.0"
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
    operator = f'{{argv: ["${{python}}", "{tmp_path}/reaper.py", "${{kubeconfig}}"], ready: {{log: ready}}}}'
    descriptor = write_descriptor(tmp_path, "reaper", operator, IDLE_PROCESS)
    real_run.write(
        """
        @requirements("AA-001")
        def test_one(case):
            case.nodes("dgx-h100", 2)
            case.until("AA-001", "what never comes", lambda view: None, timeout=300)
        """,
        ids=1,
    )
    result = real_run.run(240, implementation=descriptor, workers=0)
    assert result.exit == 1, result.out + result.err
    assert result.outcomes == {"AA-001": "blocked"}
    assert re.search(r'of the test was deleted by the user operator \(client "grove-conformance-x/1\.0"\)', result.out)
    assert real_run.remains() == []


@pytest.mark.thorough
def test_an_implementation_that_exits_at_once(real_run: RealRun, tmp_path: Path) -> None:
    argv = """["${python}", "-c", "print('no such flag'); raise SystemExit(3)"]"""
    process = f'{{argv: {argv}, ready: {{http: "http://127.0.0.1:${{port.health}}/readyz"}}}}'
    descriptor = write_descriptor(tmp_path, "crasher", process, process)
    result = real_run.run(120, implementation=descriptor, workers=1)
    assert result.exit == 1, result.err
    assert set(result.outcomes.values()) == {"blocked"}
    assert result.out.count("exited with code 3 before it was ready") == 1
    assert "no such flag" in (result.folder / "logs" / "operator.log").read_text()
    assert "Traceback" not in result.out + result.err
    assert real_run.remains() == []


def test_an_implementation_that_dies_fails_its_test_at_once_and_is_revived(real_run: RealRun, tmp_path: Path) -> None:
    """The implementation serves a health page until a file appears, then exits."""
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
    ready = '{http: "http://127.0.0.1:${port.health}/readyz"}'
    processes = (
        f'{{argv: ["${{python}}", "{tmp_path}/fragile.py", "${{port.health}}", "{end}"], ready: {ready}}}'
        for end in (deadly, tmp_path / "never")
    )
    descriptor = write_descriptor(tmp_path, "fragile", *processes)
    real_run.faked.write(
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
    conftest = real_run.faked.folder / "tests" / "conftest.py"
    conftest.write_text(
        "import os, pytest\n@pytest.fixture(autouse=True)\ndef alive():\n    yield\n"
        f"    os.path.exists({str(deadly)!r}) and os.unlink({str(deadly)!r})\n"
    )
    result = real_run.run(120, implementation=descriptor, workers=1)
    assert result.exit == 1, result.err + result.out
    assert result.outcomes == {"AA-001": "failed", "AA-002": "passed"}
    assert "fragile: the operator exited with code 7" in result.out
    assert "panic: cannot go on" in result.out
    first = result.report["run"]["tests"][0]
    assert first["seconds"]["call"] < 10
    bundle = result.folder / result.report["verdict"]["requirements"][0]["failures"][0]["bundle"]
    assert "panic" in (bundle / "logs" / "operator.log").read_text()
    assert {"history.jsonl.gz", "timeline.txt", "objects.yaml", "checks.yaml", "reproduce.txt"} <= {
        p.name for p in bundle.iterdir()
    }
    assert real_run.remains() == []
