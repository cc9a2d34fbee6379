"""A small scale run on a real control plane, as a user starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.data import folder
from conformance.scale import results

pytestmark = pytest.mark.cluster


PHASES = """
phases:
- {name: deploy, create: {}}
- {name: up, scale: 12}
- {name: down, scale: 6}
- name: touch
  patch: [{op: add, path: /metadata/annotations, value: {grove.io/reconcile-trigger: "steady-${run}"}}]
  until: observed
  hold: 1
  unchanged: true
- name: update
  patch: [{op: add, path: "/spec/template/cliques/0/spec/podSpec/containers/0/env", value: [{name: V, value: "2"}]}]
- {name: delete, delete: {}}
"""


def scale(reports: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", "scale", "--scenario", "scale-20", "--report-dir", str(reports)]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=200, check=False)


def counts(phase: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    """The writes of a phase by program, verb and resource."""
    return {(row["program"], row["verb"], row["resource"]): row["count"] for row in phase["writes"]["rows"]}


def test_markers_follow_each_other_and_writes_are_counted(tmp_path: Path) -> None:
    done = scale(tmp_path, "--write-floor")
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.iterdir()
    result = json.loads(path.read_text())
    assert result["complete"] and results.read(path) == result
    deploy, delete = result["phases"]
    order = ["first-pod-created", "pods-created", "pods-scheduled", "pods-ready"]
    times = [deploy["markers"][name] for name in order]
    assert times == sorted(times) and times[0] > 0
    assert deploy["markers"]["pcs-available"] <= deploy["markers"]["pcs-all-available"]
    assert delete["markers"]["pcs-deleted"] <= delete["markers"]["all-deleted"]
    assert delete["markers"]["pods-deleted"] <= delete["markers"]["all-deleted"]
    raw = result["floors"]["mean"]
    assert deploy["timesFloor"]["pods-ready"] == pytest.approx(times[-1] / raw["pods-ready"], rel=0.02)
    assert delete["timesFloor"]["all-deleted"] == pytest.approx(
        delete["markers"]["all-deleted"] / raw["pods-deleted"], rel=0.02
    )
    written = result["floors"]["write"]
    assert written["markers"]["pods-created"] <= written["markers"]["pods-ready"]
    assert 0.8 < written["writes"] / deploy["writes"]["total"] < 1.2  # two runs do not write exactly the same
    assert deploy["timesWriteFloor"]["pods-ready"] > 0
    assert result["implementation"]["programs"]["operator"]["program"] == "reference_impl"
    readers = {row["program"] for row in deploy["reads"]["rows"]}
    assert "grove-conformance-recorder" in readers or "grove-reference-operator" in readers
    rows = counts(deploy)
    assert rows["grove-reference-operator", "create", "pods"] == 20
    assert rows["kube-scheduler", "create", "pods/binding"] == 20
    assert 3 < deploy["writes"]["perPod"] < 9  # pod, gate, and a share of clique, gang, service and their statuses
    assert "pods-ready" in done.stdout and path.name in done.stdout


def test_a_scenario_file_plays_its_phases_with_the_gang_scheduler(tmp_path: Path) -> None:
    text = (folder("fixtures") / "scale" / "scale-20.yaml").read_text()
    path = tmp_path / "phases.yaml"
    path.write_text(text.replace("name: ScaleTest_20", "name: Phases") + PHASES)
    done = scale(tmp_path / "reports", "--scenario", str(path), "--scheduler", "gang")
    assert done.returncode == 0, done.stderr
    result = results.read(next((tmp_path / "reports").iterdir()))
    assert counts(result["phases"][0])["grove-reference-scheduler", "create", "pods/binding"] == 20
    phases = {phase["name"]: phase for phase in result["phases"]}
    assert list(phases) == ["deploy", "up", "down", "touch", "update", "delete"]
    assert [phases[name]["podsCreated"] for name in phases] == [20, 4, 0, 0, 12, 0]
    assert phases["down"]["markers"]["pods-at-target"] > 0
    assert phases["touch"]["markers"]["pcs-still-available"] == 0 and phases["touch"]["machine"]["seconds"] >= 1
    assert phases["update"]["markers"]["first-pod-deleted"] < phases["update"]["markers"]["pcs-updated"]


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
    assert "operator" in done.stderr.splitlines()[-1]
    [path] = (tmp_path / "reports").iterdir()
    result = results.read(path)
    assert not result["complete"] and result["floors"]["before"] and "operator" in result["reason"]
