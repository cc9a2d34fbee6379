"""Tests on a real cluster that a conformance test can give the pods of a workload a behavior, and make nodes and
devices fail."""

from __future__ import annotations

import subprocess

import pytest
from faked import Faked, RunResult

pytestmark = pytest.mark.cluster

TESTS = """
    from conformance.grove import pods
    from conformance.history.query import Unmet

    def ready(view, expected):
        count = sum(pods.is_ready(pod) for pod in view.list("pods"))
        return count == expected or Unmet(f"{count} pods are Ready")

    def effects(view, node):
        specs = [item["spec"] for item in view.list("resourceslices")]
        devices = [device for spec in specs if spec["nodeName"] == node for device in spec["devices"]]
        return [taint["effect"] for device in devices for taint in device.get("taints", [])]

    @requirements("AA-001")
    def test_behaviors_and_node_failures(case):
        (node,) = case.nodes("tiny", 1)
        workload = case.workload("frontend", pods=2)
        quickly = {"running_after": "0s", "exit_after": "0s", "restart_after": "1s"}
        case.set_behavior(workload, "web", "crash-loop", restarts=1, **quickly)
        case.create(workload)
        case.until("AA-001", "the pods are Ready", lambda view: ready(view, 2))
        restarts = [pod["status"]["containerStatuses"][0]["restartCount"] for pod in case.history.view().list("pods")]
        case.expect("AA-001", "each was restarted once", [1, 1], restarts)
        case.fail_node(node)
        case.expect("AA-001", "pods of the lost node", 0, sum(map(pods.is_ready, case.history.view().list("pods"))))
        case.recover_node(node)
        case.until("AA-001", "the pods are Ready again", lambda view: ready(view, 2))
        (node,) = case.nodes("dgx-h100", 1, gpus="devices")
        case.fail_gpu(node, "gpu-3", drain=True)
        case.expect("AA-001", "taint of the device", ["NoExecute"], effects(case.history.view(), node))
        case.repair_gpu(node, "gpu-3")
        case.expect("AA-001", "taint of the device", [], effects(case.history.view(), node))

    @requirements("AA-002")
    def test_a_misspelt_behavior(case):
        workload = case.workload("frontend")
        workload["spec"]["template"]["cliques"][0]["annotations"] = {"conformance.grove.io/behavior": "crashloop"}
        case.create(workload)
"""


def test_a_conformance_test_scripts_pods_and_failures_and_its_mistake_is_reported(faked: Faked) -> None:
    faked.write(TESTS)
    (faked.folder / "tests" / "conftest.py").unlink()
    done = subprocess.run(
        faked.command(implementation="reference"),
        env=faked.environment(),
        capture_output=True,
        text=True,
        timeout=180,
    )
    result = RunResult(done.returncode, done.stdout, done.stderr, faked.folder / "run")
    assert result.outcomes == {"AA-001": "passed", "AA-002": "harness-error"}, result.out + result.err
    assert "clique web: conformance.grove.io/behavior: unknown behavior 'crashloop'" in result.out
