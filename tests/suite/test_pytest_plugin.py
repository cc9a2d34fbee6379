"""The pytest plugin in sessions of other people: with their options, and without a trace where nobody asks for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from conformance.data import PROJECT
from tests.suite.left import left

EXAMPLE = PROJECT / "docs" / "examples" / "pytest" / "test_lost_node.py"
JUDGE = ("--pyargs", "conformance.tests", "--grove-implementation", "reference")


def session(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest as somebody else runs it, with the plugins that are installed."""
    environment = os.environ | {"GROVE_CONFORMANCE_STATE": str(folder / "state"), "COLUMNS": "200"}
    for name in ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", ".", "-p", "no:asyncio", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)


def test_it_imports_nothing_of_the_suite() -> None:
    """It is loaded by every session of an environment that has the package."""
    code = "import pytest, sys; before = set(sys.modules); import grove_conformance.pytest_plugin"
    code += "; print(sorted({*sys.modules} - before))"
    found = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert found.strip() == str(
        ["grove_conformance", "grove_conformance.precedence", "grove_conformance.pytest_plugin"]
    )


def test_a_session_that_does_not_ask_for_it_is_the_same_without_it(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_one(): pass\ndef test_two(): assert 0\n")
    said = [session(tmp_path, "-v", "-p", "no:cacheprovider", *more) for more in ((), ("-p", "no:grove-conformance"))]

    def told(done: subprocess.CompletedProcess[str]) -> str:
        lines = [line for line in done.stdout.splitlines() if not line.startswith("plugins:")]
        return re.sub(r"in [0-9.]+s", "", "\n".join(lines))

    assert "1 failed, 1 passed" in told(said[0])
    assert told(said[0]) == told(said[1]) and said[0].stderr == said[1].stderr
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["test_mine.py"]


def test_a_folder_of_the_users_with_the_name_of_our_package_hides_nothing(tmp_path: Path) -> None:
    """Neither theirs from their tests, nor ours from us."""
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance" / "__init__.py").write_text("MINE = True\n")
    (tmp_path / "test_mine.py").write_text("from conformance import MINE\ndef test_mine(): assert MINE\n")
    assert "1 passed" in session(tmp_path, "test_mine.py").stdout
    done = session(tmp_path, *JUDGE, "--grove-id", "CORE-001", "--collect-only", "-q")
    assert "core/test_managed_objects.py::test_exactly_the_expected_objects_exist" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--pyargs", "conformance.tests"),
            "conformance.tests judge an implementation: give --grove-implementation NAME",
        ),
        (("--pyargs", "conformance.tests", "--grove-implementation", "referenc"), 'did you mean "reference"?'),
        ((*JUDGE, "--grove-id", "CORE-999"), "unknown requirement 'CORE-999'"),
        ((*JUDGE, "--grove-set", "mutant"), "--grove-set: 'mutant' is not NAME=VALUE"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = session(tmp_path, *arguments)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in done.stderr.splitlines() if line.strip()]
    assert line.startswith("ERROR: ") and words in line


def test_tests_are_selected_by_pytests_options_and_by_ours(tmp_path: Path) -> None:
    done = session(tmp_path, *JUDGE, "--grove-profile", "core", "-k", "managed or quota", "--collect-only", "-q")
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    assert tests and all(line.startswith(("core/test_managed_objects", "core/test_pods_over_quota")) for line in tests)
    assert not (tmp_path / "reports").exists(), "nothing was run"


def test_a_path_names_conformance_tests_as_well(tmp_path: Path) -> None:
    done = session(tmp_path, str(PROJECT / "conformance" / "tests" / "topology"), "--collect-only", "-q")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "--grove-implementation" in done.stderr


@pytest.mark.cluster
def test_conformance_tests_run_with_pytests_own_options(tmp_path: Path) -> None:
    """By a worker, up to the first failure, which is the one that is run again."""
    judge = (*JUDGE, "--grove-set", "mutant=part-of-missing", "--grove-id", "CORE-001", "--grove-id", "CORE-002")
    done = session(tmp_path, *judge, "-k", "managed", "-n", "1", "-x", "--junitxml", "junit.xml")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    (folder,) = (tmp_path / "reports").iterdir()
    assert "reference 0.1.0 is NOT conformant" in done.stdout and f"report: {folder / 'report.yaml'}" in done.stdout
    verdict = yaml.safe_load((folder / "report.yaml").read_text())["verdict"]
    outcomes = {entry["id"]: entry["outcome"] for entry in verdict["requirements"]}
    assert (outcomes["CORE-001"], outcomes["CORE-002"], verdict["complete"]) == ("passed", "failed", True)
    cases = ET.parse(tmp_path / "junit.xml").getroot().findall(".//testcase")
    assert sorted(len(case.findall("failure")) for case in cases) == [0, 1]
    again = session(tmp_path, *judge, "--lf", "--collect-only", "-q")
    assert [line.partition("::")[2] for line in again.stdout.splitlines() if "::" in line] == [
        "test_objects_carry_the_common_labels"
    ]
    assert left(tmp_path / "state") == []


NODES = """
import os, subprocess
from kubernetes.client import CoreV1Api

def test_nodes_come_and_go(grove_cluster):
    core = CoreV1Api(grove_cluster.client)
    one, two = grove_cluster.add_nodes("dgx-h100:2")
    grove_cluster.fail_node(one)
    grove_cluster.recover_node(one)
    grove_cluster.remove_nodes([two])
    names = [node.metadata.name for node in core.list_node().items]
    assert one in names and two not in names
    with grove_cluster.namespace("mine") as space:
        assert space.startswith("mine-") and core.read_namespace(space).status.phase == "Active"
    assert grove_cluster.kubeconfig.stat().st_mode & 0o77 == 0
"""


def test_a_wait_in_vain_says_what_was_seen_last() -> None:
    from conformance.grove_cluster import GroveCluster

    cluster = GroveCluster.__new__(GroveCluster)
    assert cluster.wait_for("it comes", iter([0, [], "it"]).__next__) == "it"
    with pytest.raises(TimeoutError, match=r"not seen within 0 s: it comes; last seen: \[\]"):
        cluster.wait_for("it comes", list, timeout=0)


@pytest.mark.cluster
def test_other_peoples_tests_get_a_cluster(tmp_path: Path) -> None:
    (tmp_path / EXAMPLE.name).write_text(EXAMPLE.read_text())
    (tmp_path / "test_nodes.py").write_text(NODES)
    done = session(tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert left(tmp_path / "state") == []
