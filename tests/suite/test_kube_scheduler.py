"""Tests that kube-scheduler in place of a gang scheduler is judged not conformant, with evidence of what it did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

TORN_STATES = {
    "SCHED-007": "bound: 1 pods of serve-0-prefill (since #",
    "SCHED-008": "bound: 1 pods of serve-0-",  # it is random which pod is bound first
}
"""Requirement → prefix of the reported state: a pod is bound although its gang as a whole does not fit."""


def test_kube_scheduler_violates_the_requirements_of_gangs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conformance", "run", "--implementation=kube-scheduler", "--workers=1"]
    command += [*(f"--id={id}" for id in TORN_STATES), "--time-scale=0.5", f"--report-dir={tmp_path}"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "judged: the gang scheduler alone" in result.stdout
    assert "the role operator was supplied by reference" in result.stdout
    [path] = tmp_path.glob("*/report.yaml")
    verdict = yaml.safe_load(path.read_text())["verdict"]
    assert verdict["result"] == "not-conformant"
    assert verdict["implementation"]["roles"] == ["gang-scheduler"]
    failures = {r["id"]: r["failures"] for r in verdict["requirements"] if r["outcome"] == "failed"}
    assert set(failures) >= set(TORN_STATES)
    for id, prefix in TORN_STATES.items():
        [failure] = failures[id]
        assert failure["expected"] == "holds at every moment" and failure["seen"].startswith(prefix)
        assert_bundle(path.parent / failure["bundle"], id, failure["test"], (path.parent / "report.txt").read_text())


def assert_bundle(folder: Path, id: str, test: str, out: str) -> None:
    """Assert that a bundle has objects, a picture, the logs and events of the components, and the command."""
    assert f"picture:    {folder}/timeline.svg" in out
    picture = (folder / "timeline.svg").read_text()
    assert "TORN: " in picture and f"{id} failed: " in picture
    kinds = {document["kind"] for document in yaml.safe_load_all((folder / "objects.yaml").read_text())}
    assert {"PodCliqueSet", "PodGang", "PodClique", "Pod", "Node"} <= kinds
    assert "FailedScheduling" in (folder / "events.txt").read_text()
    assert (folder / "logs" / "operator.log").is_file()
    words = (folder / "logs" / "cluster" / "kube-scheduler.log").read_text()
    assert "Successfully bound pod to node" in words and "serve-0-decode" in words
    reproduce = (folder / "reproduce.txt").read_text()
    assert "run --implementation kube-scheduler" in reproduce and f"--test {test}" in reproduce
    index = (folder / "README.md").read_text()
    assert all(path.name in index for path in folder.rglob("*") if path.is_file() and path.name != "README.md")
