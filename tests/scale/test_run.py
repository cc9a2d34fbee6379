"""Tests of a small scale run on a real control plane, which is started through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
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


def run_scale(reports: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", "scale", "--scenario", "scale-20", "--report-dir", str(reports)]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=280, check=False)


@dataclass(frozen=True)
class ScaleRun:
    """A scale run: its result as JSON, the same result as returned by `results.read`, and the name of the program that
    binds pods."""

    result: dict[str, Any]
    read_result: dict[str, Any]
    binder: str

    @property
    def phases(self) -> dict[str, dict[str, Any]]:
        """Return the phases by name."""
        return {phase["name"]: phase for phase in self.result["phases"]}


def writes_by_key(phase: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    """Return the number of writes in a phase by program, verb and resource."""
    return {(row["program"], row["verb"], row["resource"]): row["count"] for row in phase["writes"]["rows"]}


ARGUMENTS_BY_FORM = {
    "kube": ("--scheduler", "kube", "--write-floor"),  # kube-scheduler binds the pods of the write floor
    "gang": ("--scheduler", "gang"),
    "proxied": ("--scheduler", "kube", "--proxied"),
}


@pytest.fixture(
    scope="module",
    params=["kube", *(pytest.param(form, marks=pytest.mark.thorough) for form in ("gang", "proxied"))],
)
def scale_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ScaleRun:
    """A run of a scenario with several phases with kube-scheduler, with the gang scheduler, or with a proxy in front of
    the operator."""
    folder_ = tmp_path_factory.mktemp("scale")
    scenario = folder_ / "phases.yaml"
    text = (folder("fixtures") / "scale" / "scale-20.yaml").read_text()
    scenario.write_text(text.replace("name: ScaleTest_20", "name: Phases") + PHASES)
    reports = folder_ / "reports"
    process = run_scale(reports, "--scenario", str(scenario), *ARGUMENTS_BY_FORM[request.param])
    assert process.returncode == 0, process.stderr
    [path] = reports.iterdir()
    assert path.name in process.stdout and "pods-ready" in process.stdout
    binder = "grove-reference-scheduler" if request.param == "gang" else "kube-scheduler"
    return ScaleRun(json.loads(path.read_text()), results.read(path), binder)


def test_markers_are_in_order(scale_run: ScaleRun) -> None:
    assert scale_run.result["complete"] and scale_run.result == scale_run.read_result
    deploy, delete = scale_run.phases["deploy"], scale_run.phases["delete"]
    marker_names = ["first-pod-created", "pods-created", "pods-scheduled", "pods-ready"]
    times = [deploy["markers"][name] for name in marker_names]
    assert times == sorted(times) and times[0] > 0
    assert deploy["markers"]["pcs-available"] <= deploy["markers"]["pcs-all-available"]
    assert delete["markers"]["pcs-deleted"] <= delete["markers"]["all-deleted"]
    assert delete["markers"]["pods-deleted"] <= delete["markers"]["all-deleted"]
    raw_floor = scale_run.result["floors"]["mean"]
    assert deploy["timesFloor"]["pods-ready"] == pytest.approx(times[-1] / raw_floor["pods-ready"], rel=0.02)
    assert delete["timesFloor"]["all-deleted"] == pytest.approx(
        delete["markers"]["all-deleted"] / raw_floor["pods-deleted"], rel=0.02
    )


def test_the_write_floor_writes_about_as_much_as_the_operator(scale_run: ScaleRun) -> None:
    deploy, write_floor = scale_run.phases["deploy"], scale_run.result["floors"].get("write")
    assert bool(write_floor) is (scale_run.binder == "kube-scheduler")
    if write_floor:
        assert write_floor["markers"]["pods-created"] <= write_floor["markers"]["pods-ready"]
        assert (
            0.8 < write_floor["writes"] / deploy["writes"]["total"] < 1.2
        )  # two runs do not write exactly the same objects
        assert deploy["timesWriteFloor"]["pods-ready"] > 0


def test_the_storage_of_a_run_is_measured(scale_run: ScaleRun) -> None:
    storage = {name: phase["storage"] for name, phase in scale_run.phases.items()}
    deploy = storage["deploy"]
    assert deploy["etcdMiB"] > 0.5 and 20 < deploy["apiServerLiveMiB"] < 2000
    assert deploy["records"] > 100 and 0.001 * deploy["records"] < deploy["recordedMiB"] < 0.05 * deploy["records"]
    writes = scale_run.phases["deploy"]["writes"]["total"]
    assert 0.0003 * writes < deploy["auditLogMiB"] < 0.05 * writes


def test_writes_are_counted_by_program(scale_run: ScaleRun) -> None:
    deploy = scale_run.phases["deploy"]
    assert scale_run.result["implementation"]["programs"]["operator"]["program"] == "reference_impl"
    readers = {row["program"] for row in deploy["reads"]["rows"]}
    assert "grove-conformance-recorder" in readers or "grove-reference-operator" in readers
    writes_by_request = writes_by_key(deploy)
    assert writes_by_request["grove-reference-operator", "create", "pods"] == 20
    assert writes_by_request[scale_run.binder, "create", "pods/binding"] == 20
    assert 3 < deploy["writes"]["perPod"] < 9  # a pod, its gate, and its share of other objects


def test_the_phases_of_a_scenario_file_are_run(scale_run: ScaleRun) -> None:
    phases = scale_run.phases
    assert list(phases) == ["deploy", "up", "down", "touch", "update", "delete"]
    assert [phases[name]["podsCreated"] for name in phases] == [20, 4, 0, 0, 12, 0]
    assert phases["down"]["markers"]["pods-at-target"] > 0
    assert phases["touch"]["markers"]["pcs-still-available"] == 0 and phases["touch"]["machine"]["seconds"] >= 1
    assert phases["update"]["markers"]["first-pod-deleted"] < phases["update"]["markers"]["pcs-updated"]


@pytest.mark.thorough
def test_the_exit_of_an_operator_without_pods_ends_the_run(tmp_path: Path) -> None:
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
    process = run_scale(tmp_path / "reports", "--implementation", str(descriptor))
    assert process.returncode == 1 and "0 pods created" in process.stderr, process.stderr
    assert "operator" in process.stderr.splitlines()[-1]
    [path] = (tmp_path / "reports").iterdir()
    result = results.read(path)
    assert not result["complete"] and result["floors"]["before"] and "operator" in result["reason"]
