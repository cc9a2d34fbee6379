"""Tests of --keep-cluster: after a failure, the cluster with all its objects remains until the user deletes it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from real import RealRun

pytestmark = pytest.mark.cluster

FAILING_TESTS = """
    @requirements("AA-001")
    def test_one(case):
        case.nodes("dgx-h100", 1)
        case.until("AA-001", "what never comes", lambda view: None, timeout=2)

    @requirements("AA-002")
    def test_two(case):
        case.expect("AA-002", "x", 1, 1)
"""


def test_the_cluster_of_a_failure_stays_with_all_that_is_on_it(real_run: RealRun) -> None:
    real_run.write(FAILING_TESTS)
    result = real_run.run(keep_cluster=True)
    assert result.exit == 1, result.err
    assert result.outcomes == {"AA-001": "failed", "AA-002": "not-run"}, "the run ends with the failure"
    match = re.search(r"cluster (\S+) was kept, with the namespace (\S+) of the test", result.err)
    assert match is not None, result.err

    def cluster(*words: str) -> str:
        command = [sys.executable, "-m", "conformance.cli", "cluster", *words]
        return subprocess.check_output(command, env=real_run.faked.environment(), text=True)

    assert match[1] in cluster("prune") + cluster("list"), "it belongs to nobody who could have gone"
    objects = cluster("kubectl", match[1], "--", "get", "namespaces,nodes", "-o", "name")
    assert f"namespace/{match[2]}" in objects and "node/" in objects
    cluster("down", match[1])
    assert real_run.remains() == []


@pytest.mark.thorough
def test_a_run_that_passes_keeps_no_evidence(real_run: RealRun) -> None:
    real_run.write(FAILING_TESTS.replace("lambda view: None", "lambda view: True"))
    result = real_run.run(keep_cluster=True)
    assert result.exit == 0, result.out + result.err
    assert "was kept" not in result.err and real_run.remains() == []
