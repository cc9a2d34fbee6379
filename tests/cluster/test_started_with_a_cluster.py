"""Tests of a cluster for manual trials that starts with an implementation, and with the user's nodes and manifests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cluster.state import StateRoot
from tests.cluster.test_commands import grove_conformance, run_in_process
from tests.cluster.test_fleets import PROFILE
from tests.cluster.test_prune import assert_nothing_is_left
from tests.cluster.waiting import wait_for

POD_CLIQUE_SET = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: mine, namespace: default, annotations: {kai.scheduler/queue: team-a}}
spec:
  replicas: 1
  template:
    cliques:
      - name: worker
        spec:
          roleName: worker
          replicas: 2
          podSpec:
            schedulerName: kai-scheduler
            tolerations: [{key: example.com/npu, operator: Exists}]
            nodeSelector: {example.com/zone: a}
            containers:
              - name: main
                image: registry.example/worker:1
                resources: {requests: {ephemeral-storage: 1Gi}, limits: {example.com/npu: "2"}}
"""


def run_kubectl(*arguments: str, text: str | None = None) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "conformance.cli", "cluster", "kubectl", "play", "--", *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.cluster
def test_an_implementation_that_starts_with_the_cluster_handles_the_users_manifests(
    state: StateRoot, tmp_path: Path
) -> None:
    (tmp_path / "npu.yaml").write_text(PROFILE)
    nodes = ["--nodes", f"{tmp_path / 'npu.yaml'}:2"]
    implementation = ["--implementation", "reference", "--set", "schedulerName=kai-scheduler"]
    result = grove_conformance("cluster", "up", "play", *nodes, *implementation)
    assert result.returncode == 0, result.stderr
    run_kubectl("apply", "-f", "-", text=POD_CLIQUE_SET)
    wait_for(
        lambda: run_kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}") == "Running Running", timeout=60
    )
    node_names = run_kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert sorted(node_names) == ["npu-0", "npu-1"]
    (record,) = json.loads(grove_conformance("cluster", "list", "--json").stdout)
    assert (
        record["state"] == "Ready"
        and record["implementation"] == "reference"
        and sorted(record["roles"]) == ["gang-scheduler", "operator"]
    )
    os.kill(record["roles"]["operator"]["pid"], signal.SIGKILL)
    assert "the operator ended" in grove_conformance("cluster", "list", "--json").stdout
    assert grove_conformance("cluster", "down", "play").returncode == 0
    assert_nothing_is_left(state)


def count_pods_by_state() -> dict[str, int]:
    """Return the number of pods by state, as `cluster status` reports it."""
    counts: dict[str, int] = json.loads(run_in_process("cluster", "status", "play", "--json").stdout)["pods"]
    return counts


@pytest.mark.thorough
@pytest.mark.cluster
def test_a_sample_runs_on_its_nodes_and_is_handled_after_a_restore(state: StateRoot) -> None:
    result = grove_conformance("cluster", "up", "play", "--implementation", "reference", "--sample", "serving")
    assert result.returncode == 0, result.stderr
    wait_for(lambda: count_pods_by_state() == {"Ready": 8})
    assert grove_conformance("cluster", "snapshot", "play").returncode == 0
    uids = run_kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
    run_kubectl("delete", "podcliqueset", "serving")
    wait_for(lambda: count_pods_by_state() == {})
    result = grove_conformance("cluster", "restore", "play")
    assert result.returncode == 0, result.stderr
    assert run_kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}") == uids and count_pods_by_state() == {
        "Ready": 8
    }
    run_kubectl("scale", "podcliquescalinggroup", "serving-0-workers", "--replicas", "1")
    wait_for(lambda: count_pods_by_state() == {"Ready": 5})
    assert grove_conformance("cluster", "down", "play").returncode == 0
    assert_nothing_is_left(state)
