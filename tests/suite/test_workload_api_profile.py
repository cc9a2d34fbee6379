"""Tests that the profile workload-api detects broken promises: Kubernetes with some feature gates off."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from conformance.cluster import kubeconfigs
from conformance.cluster.controlplane import Cluster
from conformance.cluster.features import FeatureRequest
from conformance.cluster.settings import ClusterSettings, LoggedReads

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600), pytest.mark.thorough]  # 1.37 is built on first use

SCHEDULER_GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
MISSING_GATES = {
    # It binds the pods of groups and trees one by one (WL37-E17).
    "kube-scheduler": (
        SCHEDULER_GATES,
        [1, 3, 5, 6, 7, 8, 15, 17, 20, 21, 22, 24, 27, 33, 34, 40, 42, 50, 51, 52, 53, 54],
    ),
    # A deleted PodGroup never disappears (WL37-E21).
    "kube-controller-manager": (("GenericWorkload",), [10]),
}


ALWAYS_BROKEN = {"WAPI-007"}
"""Requirements that kube-scheduler 1.37.2 fails even with all gates (docs/findings/kube-scheduler-workload-api.md)."""


@pytest.mark.parametrize("component", MISSING_GATES)
def test_a_component_without_its_gates_breaks_promises(component: str, tmp_path: Path) -> None:
    gates, numbers = MISSING_GATES[component]
    ids = ids_of(numbers)
    gates_off = tuple(f"{component}:{gate}=false" for gate in gates)
    code, outcomes, text = judge(ids, f"lacking-{component.partition('-')[2][:5]}", gates_off, tmp_path)
    assert outcomes == dict.fromkeys(ids, "failed"), text
    assert code == 1, text


def test_with_all_gates_the_same_promises_are_kept(tmp_path: Path) -> None:
    ids = [id for _, numbers in MISSING_GATES.values() for id in ids_of(numbers) if id not in ALWAYS_BROKEN]
    _, outcomes, text = judge(ids, "lacking-none", (), tmp_path)
    assert outcomes == dict.fromkeys(ids, "passed"), text


def ids_of(numbers: list[int]) -> list[str]:
    return [f"WAPI-{number:03d}" for number in numbers]


def judge(ids: list[str], name: str, gates_off: tuple[str, ...], folder: Path) -> tuple[int, dict[str, str], str]:
    """Judge kube-scheduler by these requirements; return the exit code, the outcomes, and the output of the command."""
    features = FeatureRequest(presets=("workload-api",), gates=gates_off)
    settings = ClusterSettings(kubernetes="1.37", features=features, preflight=False, reads=LoggedReads.IMPLEMENTATIONS)
    cluster = Cluster.up(name, settings=settings)
    try:
        command = [sys.executable, "-m", "conformance", "run", "--implementation=kube-scheduler"]
        command += ["--cluster=existing", f"--kubeconfig={kubeconfigs.suite_kubeconfig(cluster)}", "--time-scale=0.25"]
        command += [*(f"--id={id}" for id in ids), f"--report-dir={folder}"]
        result = subprocess.run(command, capture_output=True, text=True)
    finally:
        cluster.down()
    [path] = folder.glob("*/report.yaml")
    outcomes = {entry["id"]: entry["outcome"] for entry in yaml.safe_load(path.read_text())["verdict"]["requirements"]}
    return result.returncode, {id: outcomes[id] for id in ids}, result.stdout + result.stderr
