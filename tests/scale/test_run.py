"""A small scale run on a real control plane, as a user starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster


def scale(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", "scale", "--scenario", "scale-20", "--report-dir", str(folder)]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.parametrize(("scheduler", "binder"), [("kube", "kube-scheduler"), ("gang", "grove-reference-scheduler")])
def test_markers_follow_each_other_and_writes_are_counted(tmp_path: Path, scheduler: str, binder: str) -> None:
    done = scale(tmp_path, "--scheduler", scheduler)
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.iterdir()
    result = json.loads(path.read_text())
    deploy, delete = result["phases"]["deploy"], result["phases"]["delete"]
    order = ["first-pod-created", "pods-created", "pods-scheduled", "pods-ready"]
    times = [deploy["markers"][name] for name in order]
    assert times == sorted(times) and times[0] > 0
    assert deploy["markers"]["pcs-first-available"] <= deploy["markers"]["pcs-available"]
    assert delete["markers"]["pods-deleted"] <= delete["markers"]["all-deleted"]
    ratio = times[-1] / result["floors"]["podsReadySeconds"]
    assert result["podsReadyTimesFloor"] == pytest.approx(ratio, rel=0.02)  # of rounded seconds
    rows = {(row["program"], row["verb"], row["resource"]): row["count"] for row in deploy["writes"]["rows"]}
    assert rows["grove-reference-operator", "create", "pods"] == 20
    assert rows[binder, "create", "pods/binding"] == 20
    assert 3 < deploy["writes"]["perPod"] < 9  # pod, gate, and a share of clique, gang, service and their statuses
    assert "pods-ready" in done.stdout and path.name in done.stdout


def test_an_operator_that_makes_nothing_ends_the_run_when_it_dies(tmp_path: Path) -> None:
    descriptor = tmp_path / "dies.yaml"
    descriptor.write_text(
        """
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: dies
version: "0"
roles: [operator]
features: []
schedulerName: default-scheduler
install:
  crds: ["${project}/reference_impl/crds"]
processes:
  operator:
    argv: ["${python}", -c, "import time; print('starting', flush=True); time.sleep(10)"]
    ready: {log: starting}
"""
    )
    done = scale(tmp_path / "reports", "--implementation", str(descriptor))
    assert done.returncode == 1 and "0 pods created" in done.stderr, done.stderr
    assert "operator" in done.stderr.splitlines()[-1] and not list((tmp_path / "reports").iterdir())
