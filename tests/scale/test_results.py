"""Tests of result files and their contents: writing, reading and validation, the identity of an implementation, the
machine, and the final check."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console

from conformance.data import PROJECT, folder
from conformance.errors import UsageError
from conformance.grove.expected import expected
from conformance.history.log import Log
from conformance.history.record import ADDED
from conformance.scale import final_check, identity, machine, results, scenario, tables
from conformance.scale.markers import Target
from conformance.scale.play import add_floor_ratios
from conformance.scale.tracker import Tracker
from tests.scale.sample_results import result


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / results.file_name(result())
    assert path.name == "20260102-030405-Made-an-operator-kube-scheduler.json"
    results.write(result(), path)
    assert results.read(path) == result() and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"\x00\xff", "is not JSON"),
        (b"[1]", "is not a ScaleResult"),
        (b'{"kind": "ConformanceReport"}', "is not a ScaleResult"),
        (b'{"kind": "ScaleResult", "apiVersion": "conformance.grove.io/v1alpha1"}', "v1alpha1"),
        (b'{"kind": "ScaleResult", "apiVersion": "conformance.grove.io/v1alpha2"}', "run"),
    ],
)
def test_other_files_are_rejected_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"other\.json") as caught:
        results.read(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        results.read(tmp_path / "none.json")


def test_an_incomplete_result_is_valid_and_shown(tmp_path: Path) -> None:
    stopped_result = copy.deepcopy(result())
    stopped_result |= {"complete": False, "reason": "deploy: not over after 600 s", "phases": []}
    stopped_result["floors"]["after"] = None
    path = tmp_path / "stopped.json"
    results.write(stopped_result, path)
    with Path("/dev/null").open("w") as null_device:
        tables.show(results.read(path), Console(file=null_device))


def test_deletion_is_compared_with_the_deletion_of_the_raw_floor() -> None:
    phases: list[dict[str, Any]] = [{"markers": {"pods-ready": 20.0, "all-deleted": 9.0, "pcs-deleted": 1.0}}]
    add_floor_ratios(phases, {"pods-created": 4.0, "pods-ready": 8.0, "pods-deleted": 3.0})
    assert phases[0]["timesFloor"] == {"pods-ready": 2.5, "all-deleted": 3.0}


def test_a_python_module_is_identified_by_its_sources_and_commit() -> None:
    program = identity.process_identity([sys.executable, "-m", "reference_impl", "operator"])
    assert program["program"] == "reference_impl" and program["digest"].startswith("sha256:")
    assert program["digest"] != identity.process_identity([sys.executable, "-m", "conformance"])["digest"]


def test_a_python_module_of_another_work_tree_is_identified_by_that_work_tree(tmp_path: Path) -> None:
    (tmp_path / "reference_impl").mkdir()
    (tmp_path / "reference_impl" / "__main__.py").write_text("pass")
    command = [sys.executable, "-m", "reference_impl"]
    program = identity.process_identity(command, str(tmp_path))
    assert program["commit"] is None and program["digest"] not in (None, identity.process_identity(command)["digest"])


def test_a_binary_is_identified_by_its_bytes_and_the_commit_of_its_work_tree(tmp_path: Path) -> None:
    binary = tmp_path / "operator"
    binary.write_bytes(b"one")
    without_repository = identity.process_identity([str(binary), "--kubeconfig=x"])
    assert (without_repository["commit"], without_repository["modified"]) == (None, None)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "operator"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    committed_program = identity.process_identity([str(binary)])
    assert (
        committed_program["digest"] == without_repository["digest"]
        and len(committed_program["commit"]) == 40
        and not committed_program["modified"]
    )
    binary.write_bytes(b"two")
    modified_program = identity.process_identity([str(binary)])
    assert modified_program["digest"] != without_repository["digest"] and modified_program["modified"]


def test_the_identity_of_an_implementation_has_its_settings_but_no_paths(tmp_path: Path) -> None:
    programs = {"operator": {"digest": "sha256:1"}}
    plain_identity = identity.implementation_digest(programs, {})
    assert (
        plain_identity
        == identity.implementation_digest(programs, {"binary": str(tmp_path)})
        != identity.implementation_digest(programs, {"qps": "5"})
    )
    assert (
        identity.implementation_digest({}, {}) is None
        and identity.implementation_digest({"operator": {"digest": None}}, {}) is None
    )


def test_a_result_contains_no_paths_of_the_machine(tmp_path: Path) -> None:
    settings = {"binary": str(tmp_path), "actions": "allocate, preempt", "path": "/healthz"}
    assert identity.published_settings(settings) == {**settings, "binary": tmp_path.name}


def test_the_machine_is_described_and_its_load_is_attributed() -> None:
    description = machine.describe()
    assert description["cpus"] > 0 and description["memoryMiB"] > 0
    meter = machine.ResourceMeter({}, threading.get_native_id())
    deadline = time.thread_time() + 0.1
    while time.thread_time() < deadline:
        pass
    assert "suite" in meter.read()
    machine_usage = meter.machine()
    assert machine_usage["recorderCpuSeconds"] >= 0.05
    assert (
        machine_usage["foreignShare"] >= 0
        and abs(machine_usage["clockJumpSeconds"]) < 1
        and machine_usage["seconds"] > 0
    )


class ScenarioObjects:
    """The objects that an operator creates for a small scenario."""

    def __init__(self) -> None:
        self.scenario = scenario.read(folder("fixtures") / "scale" / "scale-20.yaml")
        self.log = Log()
        self.target = Target(20, 10, 1, 0, 0)
        manifest = self.scenario.pod_clique_set("space", None)
        objects = expected(manifest)
        status = {"replicas": 10, "availableReplicas": 10, "updatedReplicas": 10, "observedGeneration": 1}
        self.add("podcliquesets", "scale", status=status)
        for name in objects.cliques:
            current_status = {"observedGeneration": 1, "readyReplicas": 2, "updatedReplicas": 2}
            self.add("podcliques", name, spec={"replicas": 2}, metadata={"generation": 1}, status=current_status)
        for name in objects.gangs:
            self.add("podgangs", name)
        for index in range(20):
            self.add("pods", f"p{index}")

    def add(self, resource: str, name: str, **document: Any) -> None:
        encoded_object = orjson.dumps(document)
        self.log.append(
            ADDED, resource, namespace="space", name=name, uid=name, version="1", raw=encoded_object, at=1.0
        )

    def find_problems(self) -> list[str]:
        tracker = Tracker(self.log, "space")
        tracker.read()
        objects = final_check.object_errors(tracker, self.scenario.expected(self.target.replicas), self.target)
        return [*objects, *final_check.status_errors(tracker, self.target)]


def test_the_final_check_accepts_the_expected_objects() -> None:
    assert ScenarioObjects().find_problems() == []


def test_the_final_check_counts_objects() -> None:
    objects = ScenarioObjects()
    objects.add("pods", "one-more")
    objects.add("podgangs", "stray", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert objects.find_problems() == [
        "21 pods instead of 20",
        "11 podgangs instead of 10",
        "1 objects are being deleted",
    ]


def test_the_final_check_requires_current_statuses() -> None:
    objects = ScenarioObjects()
    objects.add("podcliquesets", "scale", status={"replicas": 10, "availableReplicas": 9, "lastErrors": [{}]})
    stale_status = {"observedGeneration": 1, "readyReplicas": 2, "updatedReplicas": 2}
    objects.add(
        "podcliques", "scale-3-expert-worker", spec={"replicas": 2}, metadata={"generation": 2}, status=stale_status
    )
    assert objects.find_problems() == [
        "availableReplicas of the set is 9 instead of 10",
        "updatedReplicas of the set is 0 instead of 10",
        "observedGeneration of the set is 0 instead of 1",
        "the status of 1 podcliques is not current, the first is scale-3-expert-worker",
        "the set has 1 lastErrors",
    ]


def test_the_commit_of_the_project_has_all_fields() -> None:
    assert set(identity.commit_of(PROJECT)) == {"commit", "modified"}
