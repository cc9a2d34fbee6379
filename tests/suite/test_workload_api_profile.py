"""The profile workload-api sees schedulers that do not keep its promises: Kubernetes with gates missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from conformance.cluster import kubeconfigs
from conformance.cluster.controlplane import Cluster
from conformance.cluster.features import Requested
from conformance.cluster.settings import ClusterSettings

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600), pytest.mark.thorough]  # 1.37 is built on first use

OF_SCHEDULER = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
LACKING = {
    # It binds the pods of groups and trees one by one (WL37-E17).
    "kube-scheduler": (
        OF_SCHEDULER,
        [1, 3, 5, 6, 7, 8, 15, 17, 20, 21, 22, 24, 27, 33, 34, 40, 42, 50, 51, 52, 53, 54],
    ),
    # A PodGroup never goes (WL37-E21).
    "kube-controller-manager": (("GenericWorkload",), [10]),
}


@pytest.mark.parametrize("component", LACKING)
def test_a_component_without_its_gates_breaks_promises(component: str, tmp_path: Path) -> None:
    gates, numbers = LACKING[component]
    ids = [f"WAPI-{number:03d}" for number in numbers]
    off = tuple(f"{component}:{gate}=false" for gate in gates)
    features = Requested(presets=("workload-api",), gates=off)
    settings = ClusterSettings(kubernetes="1.37", features=features, preflight=False, reads=True)
    cluster = Cluster.up(f"lacking-{component.partition('-')[2][:5]}", settings=settings)
    try:
        command = [sys.executable, "-m", "conformance", "run", "--implementation=kube-scheduler"]
        command += ["--cluster=existing", f"--kubeconfig={kubeconfigs.suite(cluster)}", "--time-scale=0.25"]
        command += [*(f"--id={id}" for id in ids), f"--report-dir={tmp_path}"]
        ran = subprocess.run(command, capture_output=True, text=True)
    finally:
        cluster.down()
    assert ran.returncode == 1, ran.stdout + ran.stderr
    [path] = tmp_path.glob("*/report.yaml")
    outcomes = {entry["id"]: entry["outcome"] for entry in yaml.safe_load(path.read_text())["verdict"]["requirements"]}
    assert {id: outcomes[id] for id in ids} == dict.fromkeys(ids, "failed"), ran.stdout
