"""Tests of the pytest plugin in other projects' sessions: it obeys their options, and has no effect unless used."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from faked import run_forked

from conformance.data import PROJECT
from conformance.run import launch
from conformance.suite.session.shards import costs, divide
from conformance.suite.settings import RunSettings
from tests.suite.remains import remains

EXAMPLE = PROJECT / "docs" / "examples" / "pytest" / "test_lost_node.py"
JUDGE_OPTIONS = ("--pyargs", "conformance.tests", "--grove-implementation", "reference")


PYTEST = (sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", ".", "-p", "no:asyncio")


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of another project's session, with its own state folder."""
    variables = os.environ | {"GROVE_CONFORMANCE_STATE": str(folder / "state"), "COLUMNS": "200"}
    for name in ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        variables.pop(name, None)
    return variables


def session(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as another project does, with the installed plugins."""
    variables = environment(folder)
    return subprocess.run([*PYTEST, *arguments], cwd=folder, env=variables, capture_output=True, text=True, timeout=280)


def end_session(arguments: Sequence[str]) -> NoReturn:
    sys.exit(pytest.main([*PYTEST[3:], *arguments]))


def quick_session(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as `session` does, in a process that has already imported pytest and the suite."""
    return run_forked(end_session, arguments, folder, environment(folder))


def test_the_plugin_imports_nothing_of_the_suite() -> None:
    """Every pytest session loads the plugin if the package is installed."""
    code = "import pytest, sys; before = set(sys.modules); import grove_conformance.pytest_plugin"
    code += "; print(sorted({*sys.modules} - before))"
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert output.strip() == str(
        ["grove_conformance", "grove_conformance.precedence", "grove_conformance.pytest_plugin"]
    )


def test_a_session_that_does_not_ask_for_it_is_the_same_without_it(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_one(): pass\ndef test_two(): assert 0\n")
    sessions = [
        session(tmp_path, "-v", "-p", "no:cacheprovider", *options) for options in ((), ("-p", "no:grove-conformance"))
    ]

    def text_of(done: subprocess.CompletedProcess[str]) -> str:
        lines = [line for line in done.stdout.splitlines() if not line.startswith("plugins:")]
        return re.sub(r"=+|in [0-9.]+s", "", "\n".join(lines))  # the longer the time, the fewer the equals signs

    assert "1 failed, 1 passed" in text_of(sessions[0])
    assert text_of(sessions[0]) == text_of(sessions[1]) and sessions[0].stderr == sessions[1].stderr
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["test_mine.py"]


def test_a_folder_of_the_users_with_the_name_of_our_package_hides_nothing(tmp_path: Path) -> None:
    """The user's tests import the user's package, and the suite imports its own package."""
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance" / "__init__.py").write_text("MINE = True\n")
    (tmp_path / "test_mine.py").write_text("from conformance import MINE\ndef test_mine(): assert MINE\n")
    assert "1 passed" in session(tmp_path, "test_mine.py").stdout
    done = session(tmp_path, *JUDGE_OPTIONS, "--grove-id", "CORE-001", "--collect-only", "-q")
    assert "core/test_managed_objects.py::test_exactly_the_expected_objects_exist" in done.stdout, done.stderr


def test_a_cluster_next_to_a_package_of_the_user_with_our_name_is_rejected_in_one_line(tmp_path: Path) -> None:
    """A process can import only one package with a given name."""
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance" / "__init__.py").write_text("MINE = True\n")
    (tmp_path / "test_mine.py").write_text(
        "import conformance\ndef test_mine(grove_cluster): assert conformance.MINE\n"
    )
    output = session(tmp_path).stdout
    assert "1 error" in output and "was imported as conformance and hides the package" in output
    assert (
        "Traceback" not in output
        and "UsageError" not in output
        and ".py:" not in output.partition("short test summary")[0]
    )


def test_an_unknown_implementation_of_the_fixture_is_reported_once_with_its_option(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_mine(grove_cluster): pass\n")
    output = session(tmp_path, "--grove-implementation", "referense").stdout.partition("short test summary")[0]
    assert output.count('--grove-implementation: unknown implementation "referense" — did you mean "reference"?') == 1
    assert "During handling" not in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--pyargs", "conformance.tests"),
            "conformance.tests judge an implementation: give --grove-implementation NAME",
        ),
        (("--pyargs", "conformance.tests", "--grove-implementation", "referenc"), 'did you mean "reference"?'),
        ((*JUDGE_OPTIONS, "--grove-id", "CORE-999"), "unknown requirement 'CORE-999'"),
        ((*JUDGE_OPTIONS, "--grove-set", "mutant"), "--grove-set: 'mutant' is not NAME=VALUE"),
        ((*JUDGE_OPTIONS, "--grove-skip", "CORE-999"), "unknown requirement 'CORE-999'"),
        ((*JUDGE_OPTIONS, "--grove-shard", "3/2"), "--grove-shard: '3/2' is not a shard"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = quick_session(tmp_path, *arguments)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    [line] = [line for line in done.stderr.splitlines() if line.strip()]
    assert line.startswith("ERROR: ") and words in line


def test_tests_are_selected_by_pytests_options_and_by_ours(tmp_path: Path) -> None:
    done = quick_session(
        tmp_path, *JUDGE_OPTIONS, "--grove-profile", "core", "-k", "managed or quota", "--collect-only", "-q"
    )
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    assert tests and all(line.startswith(("core/test_managed_objects", "core/test_pods_over_quota")) for line in tests)
    assert not (tmp_path / "reports").exists(), "nothing was run"


def collected(folder: Path, *arguments: str) -> list[str]:
    """Return the tests of the profile startup that a session with these arguments would run."""
    judge = ("--pyargs", "conformance.tests.startup", *JUDGE_OPTIONS[2:], "--grove-profile", "startup")
    done = quick_session(folder, *judge, "--collect-only", "-q", *arguments)
    return [f"startup/{line}" for line in done.stdout.splitlines() if "::" in line]


def test_shards_and_skipped_requirements_are_those_of_a_run(tmp_path: Path) -> None:
    settings = RunSettings(run="r", directory=str(tmp_path), implementation="reference", profiles=("startup",))
    plan = launch.collect(settings)
    startup = {test: scene for test, scene in plan.groups.items() if test.startswith("startup/")}
    shards = [collected(tmp_path, "--grove-shard", f"{number}/2") for number in (1, 2)]
    assert [set(tests) for tests in shards] == divide(startup, 2, costs()) and all(shards)

    (id,) = plan.selected[one := "startup/test_orders.py::test_any_order_waits_for_nothing"]
    assert one not in collected(tmp_path, "--grove-skip", id)


MANY_SHARDS = (
    "--pyargs",
    "conformance.tests.nodes",
    *JUDGE_OPTIONS[2:],
    "--grove-profile",
    "nodes",
    "--grove-shard",
    "1/99",
)


def test_more_shards_than_scenes_are_refused(tmp_path: Path) -> None:
    done = quick_session(tmp_path, *MANY_SHARDS)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert re.search(r"ERROR: --grove-shard 1/99: only \d scenes are selected", done.stderr)


@pytest.mark.thorough
def test_a_worker_refuses_more_shards_than_scenes(tmp_path: Path) -> None:
    done = session(tmp_path, *MANY_SHARDS, "-n", "1")
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert re.search(r"ERROR: --grove-shard 1/99: only \d scenes are selected", done.stdout)


def test_a_path_names_conformance_tests_as_well(tmp_path: Path) -> None:
    done = quick_session(tmp_path, str(PROJECT / "conformance" / "tests" / "topology"), "--collect-only", "-q")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "--grove-implementation" in done.stderr


@pytest.mark.cluster
def test_conformance_tests_run_with_pytests_own_options(tmp_path: Path) -> None:
    """A worker runs the tests up to the first failure, and --lf selects only the failed test."""
    judge = (
        *JUDGE_OPTIONS,
        "--grove-set",
        "mutant=part-of-missing",
        "--grove-id",
        "CORE-001",
        "--grove-id",
        "CORE-002",
    )
    done = session(tmp_path, *judge, "-k", "managed", "-n", "1", "-x", "--junitxml", "junit.xml")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    (folder,) = (tmp_path / "reports").iterdir()
    assert "reference 0.1.0 is NOT conformant" in done.stdout and f"report: {folder / 'report.yaml'}" in done.stdout
    verdict = yaml.safe_load((folder / "report.yaml").read_text())["verdict"]
    outcomes = {entry["id"]: entry["outcome"] for entry in verdict["requirements"]}
    assert (outcomes["CORE-001"], outcomes["CORE-002"], verdict["complete"]) == ("passed", "failed", True)
    cases = ET.parse(tmp_path / "junit.xml").getroot().findall(".//testcase")
    assert sorted(len(case.findall("failure")) for case in cases) == [0, 1]
    second = session(tmp_path, *judge, "--lf", "--collect-only", "-q")
    assert [line.partition("::")[2] for line in second.stdout.splitlines() if "::" in line] == [
        "test_objects_carry_the_common_labels"
    ]
    assert remains(tmp_path / "state") == []


@pytest.mark.cluster
@pytest.mark.thorough
@pytest.mark.parametrize("workers", ["0", "2"])
def test_ctrl_c_leaves_only_a_verdict_of_the_completed_tests(tmp_path: Path, workers: str) -> None:
    """A terminal sends SIGINT to all processes of the session, also while a test plays its scene."""
    command = [*PYTEST, *JUDGE_OPTIONS, "--grove-profile", "core", "-n", workers, "-v"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        lines = list(takewhile(lambda line: "PASSED" not in line, process.stdout))
        os.killpg(process.pid, signal.SIGINT)
        lines += process.stdout
    assert process.returncode == pytest.ExitCode.INTERRUPTED, "".join(lines)
    (report,) = (tmp_path / "reports").glob("*/report.yaml")
    verdict = yaml.safe_load(report.read_text())["verdict"]
    assert (verdict["result"], verdict["complete"]) == ("interrupted", False)
    assert verdict["counts"]["passed"] and verdict["counts"]["not-run"] and not verdict["counts"]["harness-error"]
    assert f"report: {report}" in "".join(lines)
    assert remains(tmp_path / "state") == []


NODE_TESTS = """
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


def test_a_wait_without_success_reports_the_last_state() -> None:
    from conformance.grove_cluster import GroveCluster

    cluster = GroveCluster.__new__(GroveCluster)
    assert cluster.wait_for("it comes", iter([0, [], "it"]).__next__) == "it"
    with pytest.raises(TimeoutError, match=r"not seen within 0 s: it comes; last seen: \[\]"):
        cluster.wait_for("it comes", list, timeout=0)


SHARED_TESTS = """
import pytest
from kubernetes.client import CoreV1Api

POD = {
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "1"}}}]},
}


@pytest.fixture(scope="session")
def lasting(grove_cluster):
    return grove_cluster.add_nodes("dgx-h100:1")


@pytest.fixture
def briefly(grove_cluster):
    (name,) = grove_cluster.add_nodes("tiny:1")
    yield name
    grove_cluster.fail_node(name)


def names(cluster):
    return sorted(node.metadata.name for node in CoreV1Api(cluster.client).list_node().items)


@pytest.mark.parametrize("turn", [1, 2])
def test_nodes_are_those_of_the_test(grove_cluster, grove_namespace, lasting, turn):
    assert grove_cluster.add_nodes("tiny:1") == ["tiny-0"] and grove_cluster.add_nodes("tiny:1") == ["tiny-1"]
    assert names(grove_cluster) == ["dgx-h100-0", "tiny-0", "tiny-1"]
    core = CoreV1Api(grove_cluster.client)
    pod = {**POD, "spec": {**POD["spec"], "nodeName": "tiny-0"}}
    core.create_namespaced_pod(grove_namespace, pod)
    ready = lambda: core.read_namespaced_pod("a", grove_namespace).status.phase == "Running"
    grove_cluster.wait_for("the pod runs", ready)


def test_nodes_of_a_fixture_live_until_it_ends(grove_cluster, briefly, lasting):
    assert briefly == "tiny-0" and names(grove_cluster) == ["dgx-h100-0", "tiny-0"]


def test_no_node_is_left(grove_cluster, lasting):
    assert names(grove_cluster) == lasting
    core = CoreV1Api(grove_cluster.client)
    assert not core.list_pod_for_all_namespaces(field_selector="spec.nodeName=tiny-0").items
"""
MISUSE_TESTS = """
import pytest

CALLS = {
    "add_nodes: unknown node profile 'tny'": lambda cluster: cluster.add_nodes("tny:1"),
    "fail_node: unknown node 'dgx-9'": lambda cluster: cluster.fail_node("dgx-9"),
    "remove_nodes: unknown node 'dgx-h100-1'": lambda cluster: cluster.remove_nodes(["dgx-h100-0", "dgx-h100-1"]),
    "remove_nodes: takes a list of names": lambda cluster: cluster.remove_nodes("dgx-h100-0"),
    "conformance.grove.io/behavior: unknown behavior": lambda cluster: cluster.behavior("crash-lop"),
    "not seen within 0 s: it": lambda cluster: cluster.wait_for("it", list, timeout=0),
}


@pytest.mark.parametrize("message", CALLS)
def test_misuse(grove_cluster, message):
    grove_cluster.add_nodes("dgx-h100:1")
    CALLS[message](grove_cluster)
"""
FAILING_TESTS = """
def test_it_fails(grove_cluster, grove_namespace):
    grove_cluster.add_nodes("tiny:1")
    assert not grove_namespace


def test_it_is_not_run(grove_cluster):
    raise ValueError("so the first failure is not the end")
"""


IMPLEMENTATION_TESTS = """
import pytest

@pytest.fixture(scope="session")
def grove_implementation(): return "{}"

def test_mine(grove_cluster): pass
"""


@pytest.mark.cluster
def test_another_implementation_than_the_cluster_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(IMPLEMENTATION_TESTS.format(""))
    (tmp_path / "test_two.py").write_text(IMPLEMENTATION_TESTS.format("reference"))
    done = session(tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "runs no implementation, and the fixture grove_implementation says reference for this test" in done.stdout


@pytest.fixture(scope="module")
def user_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The folder and the output of one session with the tests of several users, which share a cluster."""
    folder = tmp_path_factory.mktemp("users")
    (folder / EXAMPLE.name).write_text(EXAMPLE.read_text())
    (folder / "test_misuse.py").write_text(MISUSE_TESTS)
    (folder / "test_nodes.py").write_text(NODE_TESTS)
    (folder / "test_shared.py").write_text(SHARED_TESTS)
    done = session(folder, "-n", "1", "-rfp")
    yield folder, done.stdout + done.stderr
    assert remains(folder / "state") == []


def count_outcomes(output: str, file: str) -> Counter[str]:
    """Return the number of tests of a file by outcome, according to pytest's short summary."""
    return Counter(re.findall(rf"^([A-Z]+) {file}::", output, re.M))


@pytest.mark.cluster
def test_other_peoples_tests_get_a_cluster(user_session: tuple[Path, str]) -> None:
    output = user_session[1]
    assert count_outcomes(output, EXAMPLE.name) == {"PASSED": 1}, output
    assert count_outcomes(output, "test_nodes.py") == {"PASSED": 1}, output


@pytest.mark.cluster
def test_nodes_end_with_the_test_or_fixture_that_adds_them(user_session: tuple[Path, str]) -> None:
    output = user_session[1]
    assert count_outcomes(output, "test_shared.py") == {"PASSED": 4}, output


@pytest.mark.cluster
def test_a_mistake_is_one_line_and_a_failed_test_leaves_logs(user_session: tuple[Path, str]) -> None:
    folder, output = user_session
    assert count_outcomes(output, "test_misuse.py") == {"FAILED": 6}, output
    for line in re.findall(r'"(.*)": lambda', MISUSE_TESTS):
        assert f": {line}" in output
    for part in re.split(r"^_+ test_misuse\[.*$", output, flags=re.MULTILINE)[1:]:
        frames = re.findall(r"^\S*\.py:\d+: .*$", part.partition("short test summary")[0], re.MULTILINE)
        assert [frame.partition(":")[0] for frame in frames[:-1]] == ["test_misuse.py"], part
    log_folders = list((folder / "reports").glob("pytest-*/*"))
    assert len(log_folders) == 6 and all((log_folder / "operator.log").exists() for log_folder in log_folders)
    assert all((log_folder / "cluster" / "kube-scheduler.log").exists() for log_folder in log_folders)
    assert f"during the test: {log_folders[0].relative_to(folder).parent}" in output


@pytest.mark.cluster
@pytest.mark.thorough
@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_the_cluster_of_the_first_failure_is_kept(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_kept.py").write_text(FAILING_TESTS)
    done = session(tmp_path, "--grove-keep-cluster", *options)
    assert "1 failed in" in done.stdout and "was kept (--grove-keep-cluster)" in done.stdout, done.stdout + done.stderr
    kubeconfig, name = re.findall(
        r"^  export KUBECONFIG=(.*)$|^  grove-conformance cluster down (\S+)", done.stdout, re.M
    )
    (space,) = re.findall(r"with the namespace (\S+):", done.stdout)
    from kubernetes import config  # its models take a second of CPU time to import
    from kubernetes.client import CoreV1Api

    try:
        client = config.new_client_from_config(kubeconfig[0])
        assert [node.metadata.name for node in CoreV1Api(client).list_node().items] == ["tiny-0"]
        assert CoreV1Api(client).read_namespace(space).status.phase == "Active"
        client.close()
    finally:
        take_down = [sys.executable, "-m", "grove_conformance", "cluster", "down", name[1]]
        subprocess.run(take_down, env=environment(tmp_path), check=True, timeout=100)
    assert remains(tmp_path / "state") == []
