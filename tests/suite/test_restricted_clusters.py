"""Tests of whole runs on clusters with strict admission: restricted namespaces, or a quota and limits in each one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings, LoggedReads
from conformance.errors import HarnessError, UsageError
from conformance.suite.scenes.api import Api
from conformance.suite.session import admitted
from kube.errors import ApiError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]
FOLDER = Path(__file__).parent
FEW_IDS = ("--id", "CORE-001", "--id", "CORE-022", "--id", "START-001")
SELECTION = ("--profile", "core") if os.environ.get("THOROUGH") else FEW_IDS
"""The selection: a whole profile, or requirements about a ready set, a lost pod and waiting init containers."""
LIMITS = {"defaultRequest": {"cpu": "10m", "memory": "16Mi"}}
ENOUGH_PODS, TOO_FEW_PODS = "500", "3"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        strict = Cluster.up("strict", settings=ClusterSettings(reads=LoggedReads.IMPLEMENTATIONS), owner=True)
        try:
            yield strict
        finally:
            strict.down()


@contextmanager
def restricted(api: Api) -> Iterator[None]:
    """Make new namespaces enforce the restricted Pod Security Standard during the block."""
    policies = list(yaml.safe_load_all((FOLDER / "restricted.yaml").read_text(encoding="utf-8")))
    for policy in policies:
        api.create(policy)
    probe = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "probe-"}}
    try:
        while "pod-security.kubernetes.io/enforce" not in (namespace := api.create(probe))["metadata"]["labels"]:
            api.delete("namespaces", None, [namespace["metadata"]["name"]])
        yield
    finally:
        for plural in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
            api.delete(plural, None, [policies[0]["metadata"]["name"]])


@contextmanager
def limited(api: Api, pods: str) -> Iterator[None]:
    """Give each new namespace a quota of `pods` and limits, as the controllers of some cluster administrators do."""
    stopped, limits = threading.Event(), list[str]()
    before = set(api.names("namespaces"))

    def make() -> None:
        while not stopped.wait(0.05):
            with suppress(HarnessError):  # the API server is busy: try again
                for namespace in set(api.names("namespaces")) - before:
                    with suppress(ApiError):  # the namespace is being deleted
                        for obj in _objects(namespace, pods):
                            api.create(obj)
                        limits.append(namespace)
                    before.add(namespace)

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
    assert limits, "no namespace got a quota"


def _objects(namespace: str, pods: str) -> list[Mapping[str, Any]]:
    metadata = {"name": "of-the-house", "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": pods}}},
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": metadata,
            "spec": {"limits": [{"type": "Container", **LIMITS}]},
        },
    ]


def run(cluster: Cluster, folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run the reference on the cluster; return the result of the command and the report."""
    command = [sys.executable, "-m", "grove_conformance", "run", "--cluster", "existing"]
    command += ["--kubeconfig", str(cluster.kubeconfig), "--workers", "1", "--report-dir", str(folder), *arguments]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    [report] = folder.rglob("report.yaml")
    return done, yaml.safe_load(report.read_text(encoding="utf-8"))


@pytest.mark.thorough
def test_the_reference_conforms_in_restricted_namespaces(cluster: Cluster, api: Api, tmp_path: Path) -> None:
    with restricted(api):
        done, report = run(cluster, tmp_path, *SELECTION)
    outcomes = {entry["outcome"] for entry in report["verdict"]["requirements"] if entry["tests"]}
    assert (done.returncode, outcomes) == (0, {"passed"}), done.stdout + done.stderr


@pytest.mark.thorough
def test_the_reference_conforms_within_a_quota_and_limits(cluster: Cluster, api: Api, tmp_path: Path) -> None:
    with limited(api, ENOUGH_PODS):
        done, report = run(cluster, tmp_path, *SELECTION)
    outcomes = {entry["outcome"] for entry in report["verdict"]["requirements"] if entry["tests"]}
    assert outcomes <= {"passed", "blocked"} and done.returncode in (0, 6), done.stdout + done.stderr


@pytest.mark.thorough
def test_a_quota_of_the_cluster_blocks_in_the_words_of_the_api_server(
    cluster: Cluster, api: Api, tmp_path: Path
) -> None:
    """The scene of CORE-031 creates its own quota, and is judged by it unless the quota of the cluster is lower."""
    with limited(api, TOO_FEW_PODS):
        done, report = run(cluster, tmp_path, "--id", "CORE-001")
    [entry] = [entry for entry in report["verdict"]["requirements"] if entry["id"] == "CORE-001"]
    assert (done.returncode, entry["outcome"]) == (6, "blocked"), done.stdout
    assert "exceeded quota: of-the-house" in entry["reason"] and "exceeded quota: of-the-house" in done.stdout


def test_a_cluster_that_refuses_the_pods_of_scenes_is_refused_in_one_line(
    cluster: Cluster, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.work(admitted.require)
    monkeypatch.setattr("conformance.grove.workloads.restricted", lambda spec: spec)
    with restricted(api), pytest.raises(UsageError, match=r'violates PodSecurity "restricted:latest": ') as refused:
        api.work(admitted.require)
    assert len(str(refused.value).splitlines()) == 1
    remaining = (api.get("namespaces", None, name) for name in api.names("namespaces") if name.startswith("preflight-"))
    assert all("deletionTimestamp" in namespace["metadata"] for namespace in remaining)
