"""Tests that an unfinished implementation is judged in minutes: the toy operator of docs/examples, at time scale 1.

Four requirements stand for all that the implementation's profiles select. The guide says how long a whole run takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from conformance import data
from conformance.cluster import gobuild
from conformance.suite.scenes.waits import SILENCE_MESSAGE

pytestmark = [pytest.mark.cluster, pytest.mark.thorough, pytest.mark.timeout(900)]

TOY = Path(__file__).parents[2] / "docs/examples/toy-operator"
IDS = ("GANG-001", "CORE-012", "CORE-020", "GANG-005")


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    go, _ = gobuild.find_go(TOY, data.cache(), lambda *_: None)
    built = tmp_path / "toy-operator"
    environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    gobuild.run([go, "build", "-C", str(TOY), "-o", str(built), "."], environment, action="building the toy operator")
    return built


def test_a_toy_operator_is_judged_without_waiting_in_full(binary: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conformance", "run", f"--implementation={TOY / 'toy.yaml'}", "--workers=1"]
    options = [f"--set=binary={binary}", f"--report-dir={tmp_path}", *(f"--id={identity}" for identity in IDS)]
    result = subprocess.run([*command, *options], capture_output=True, text=True)
    assert result.returncode == 1, result.stdout + result.stderr
    [path] = tmp_path.glob("*/report.yaml")
    requirements = {r["id"]: r for r in yaml.safe_load(path.read_text())["verdict"]["requirements"]}
    # Existing objects pass; a missing object fails one requirement, and blocks the checks about the object.
    assert requirements["GANG-005"]["outcome"] == "passed", requirements["GANG-005"]["reason"]
    assert requirements["GANG-001"]["outcome"] == "failed"
    assert requirements["CORE-012"]["outcome"] == "blocked"
    assert requirements["CORE-020"]["outcome"] == "blocked" and SILENCE_MESSAGE in requirements["CORE-020"]["reason"]
