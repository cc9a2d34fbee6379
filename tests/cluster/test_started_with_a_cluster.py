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
from tests.cluster.test_commands import grove_conformance, here
from tests.cluster.test_fleets import PROFILE
from tests.cluster.test_prune import assert_nothing_is_left
from tests.cluster.waiting import wait_for

SET = """
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


def kubectl(*arguments: str, text: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "conformance.cli", "cluster", "kubectl", "play", "--", *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.cluster
def test_an_implementation_that_was_started_with_the_cluster_serves_the_users_manifests(
    state: StateRoot, tmp_path: Path
) -> None:
    (tmp_path / "npu.yaml").write_text(PROFILE)
    nodes = ["--nodes", f"{tmp_path / 'npu.yaml'}:2"]
    implementation = ["--implementation", "reference", "--set", "schedulerName=kai-scheduler"]
    done = grove_conformance("cluster", "up", "play", *nodes, *implementation)
    assert done.returncode == 0, done.stderr
    kubectl("apply", "-f", "-", text=SET)
    wait_for(lambda: kubectl("get", "pods", "-o", "jsonpath={.items[*].status.phase}") == "Running Running", timeout=60)
    placed = kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert sorted(placed) == ["npu-0", "npu-1"]
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


def pods() -> dict[str, int]:
    """Return the number of pods by state, as `cluster status` shows it."""
    counts: dict[str, int] = json.loads(here("cluster", "status", "play", "--json").stdout)["pods"]
    return counts


@pytest.mark.cluster
def test_a_sample_runs_on_its_nodes_and_is_restored_with_an_implementation_that_goes_on(state: StateRoot) -> None:
    done = grove_conformance("cluster", "up", "play", "--implementation", "reference", "--sample", "serving")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: pods() == {"Ready": 8})
    assert grove_conformance("cluster", "snapshot", "play").returncode == 0
    uids = kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
    kubectl("delete", "podcliqueset", "serving")
    wait_for(lambda: pods() == {})
    done = grove_conformance("cluster", "restore", "play")
    assert done.returncode == 0, done.stderr
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}") == uids and pods() == {"Ready": 8}
    kubectl("scale", "podcliquescalinggroup", "serving-0-workers", "--replicas", "1")
    wait_for(lambda: pods() == {"Ready": 5})
    assert grove_conformance("cluster", "down", "play").returncode == 0
    assert_nothing_is_left(state)
