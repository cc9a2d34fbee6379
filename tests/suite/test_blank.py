"""Tests that an implementation that does nothing soon fails every requirement that the CRDs alone do not meet, with the
reason. If such a requirement passed, its check could never fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from conformance.evidence import bundle
from conformance.suite.scenes.wait_budget import NOTHING_WRITTEN
from tests.conftest import THOROUGH

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

BY_CRDS_ALONE = {
    *(
        "ADM-025",
        "ADM-044",
        "ADM-051",
        "ADM-059",
        "ADM-061",
        "ADM-062",
        "CRD-001",
        "CRD-002",
        "CRD-003",
        "CRD-004",
        "MAP-064",
    ),
    *("COHR-001", "COHR-002", "COHR-003", "COHR-007", "COHR-008"),
}
"""Requirements that the API server meets by itself, with the CRDs that the blank implementation installs.

ADM-044, ADM-051, ADM-059, ADM-061, ADM-062 and COHR-008 pass if an object is accepted, and
COHR-007 passes if a field is not defaulted."""

PART = () if THOROUGH else ("--shard=11/24",)
"""Options that select a twenty-fourth of the suite. The whole suite takes six minutes."""


def test_only_requirements_that_the_crds_meet_pass(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conformance", "run", "--implementation=blank", "--workers=1", "--time-scale=0.1"]
    command += ["--bundle-limit=1", f"--report-dir={tmp_path}", *PART]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    assert NOTHING_WRITTEN in result.stdout
    [path] = tmp_path.glob("*/report.yaml")
    report = yaml.safe_load(path.read_text())
    requirements = report["verdict"]["requirements"]
    judged = {requirement["id"] for requirement in requirements if requirement["tests"]}
    passed = {requirement["id"] for requirement in requirements if requirement["outcome"] == "passed"}
    assert judged and passed == BY_CRDS_ALONE & judged
    assert report["verdict"]["counts"]["harness-error"] == 0
    # In a whole run many scenes fail, and the evidence is limited: only some bundles are complete. Each has an index.
    complete = {(folder / bundle.HISTORY).exists() for folder in (path.parent / "bundles").iterdir()}
    assert complete == {True, False} if THOROUGH else True in complete
    assert all((folder / bundle.INDEX).is_file() for folder in (path.parent / "bundles").iterdir())
