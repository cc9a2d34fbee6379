"""Tests of operators as separate processes on a real control plane. The operators are killed, suspended and stopped,
and their metrics and logs are checked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.grove import workloads
from conformance.grove.kinds import LEASE
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED
from conformance.history.recorder import Recorder
from conformance.history.view import View
from conformance.implementation import loading
from conformance.implementation.driver import ClusterFacts, Driver
from conformance.implementation.process import ProcessGroup
from kube.client import Client
from kube.resource import NAMESPACES
from reference_impl.api import models

pytestmark = pytest.mark.cluster

NAMESPACE = "elected"
LEASE_SECONDS = 4
CONFIGURATION = f"""
logFormat: json
leaderElection:
  enabled: true
  leaseDuration: {LEASE_SECONDS}s
  renewDeadline: 3s
  retryPeriod: 300ms
  resourceNamespace: {NAMESPACE}
"""
PODS = 2 + 3 * (2 + 2)


class Processes:
    """Starts the processes under test, each with its own port, and stops them."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._started: list[ProcessGroup] = []
        (folder / "operator.yaml").write_text(CONFIGURATION)

    def start(self, number: int, command: str, *options: str) -> ProcessGroup:
        port = self._cluster.port(number)
        arguments = [command, f"--kubeconfig={self._cluster.kubeconfig}", f"--health-port={port}", *options]
        log = self._folder / f"{number}.log"
        group = ProcessGroup(
            [sys.executable, "-m", "reference_impl", *arguments],
            environment=os.environ | self._cluster.marker(),
            directory=self._folder,
            log=log,
        )
        self._started.append(group)
        group.wait_ready(f"http://127.0.0.1:{port}/readyz", None, 30)
        return group

    def operator(self, number: int) -> ProcessGroup:
        return self.start(number, "operator", f"--config={self._folder}/operator.yaml")

    def end(self) -> None:
        for group in self._started:
            group.kill()

    def metrics(self, number: int) -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._cluster.port(number)}/metrics", timeout=10) as answer:
            page = answer.read().decode()
        return {
            f"{sample.name}{sorted(sample.labels.values()) or ''}": sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        }


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path / "state"))
    control_plane = Cluster.up("elected", settings=ClusterSettings(audit=False), owner=True)
    # Install the CRDs without the webhooks.
    Driver(
        loading.load("blank"),
        ClusterFacts(control_plane.kubeconfig, control_plane.directory, control_plane.marker(), control_plane.port),
    ).install()
    control_plane.learn_new_kinds()
    yield control_plane
    control_plane.down()


@pytest.fixture
def history(cluster: Cluster) -> Iterator[History]:
    recorder = Recorder(cluster.kubeconfig, "tests-elected")
    recorder.start()
    yield History(recorder, NAMESPACE)
    recorder.stop()


@pytest.fixture
def processes(cluster: Cluster, tmp_path: Path) -> Iterator[Processes]:
    started = Processes(cluster, tmp_path)
    yield started
    started.end()


def build_set() -> dict[str, Any]:
    sizes = {"routers": 2, "workers": 3, "prefills": 2, "decodes": 2, "prefillGpus": 1, "decodeGpus": 1}
    manifest = dict(workloads.load("disaggregated", {"setName": "s", **sizes}))
    manifest["metadata"] = {**manifest["metadata"], "namespace": NAMESPACE}
    template = manifest["spec"]["template"]
    template |= {"terminationDelay": "4h0m0s", "headlessServiceConfig": {"publishNotReadyAddresses": True}}
    template.setdefault("cliqueStartupType", "CliqueStartupTypeAnyOrder")
    return manifest


def run_with_client(cluster: Cluster, action: Callable[[Client], Any]) -> None:
    async def run() -> None:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
            await action(client)

    asyncio.run(run())


async def make_room(client: Client) -> None:
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    manifests = nodes.manifests("dgx-h100", 2)
    await nodes.create_nodes(client, manifests)
    await nodes.wait_until_schedulable(client, [node["metadata"]["name"] for node in manifests])


def holder(view: View) -> str:
    return ((view.get("leases", LEASE) or {}).get("spec") or {}).get("holderIdentity") or ""


def has_other_leader(than: str) -> Callable[[View], str | None]:
    return lambda view: ((leader := holder(view)) != than and leader) or None


def available(view: View) -> bool:
    return ((view.get("podcliquesets", "s") or {}).get("status") or {}).get("availableReplicas") == 1


def all_bound(view: View) -> bool:
    return sum(bool(pod["spec"].get("nodeName")) for pod in view.list("pods")) == PODS


def pods_created_and_deleted(history: History) -> tuple[int, int]:
    records = history.records("pods")
    deleted = {r.name for r in records if r.kind == DELETED or r.object["metadata"].get("deletionTimestamp")}
    return sum(record.kind == ADDED for record in records), len(deleted)


def test_another_operator_takes_over_whenever_the_leader_fails(
    cluster: Cluster, history: History, processes: Processes
) -> None:
    run_with_client(cluster, make_room)
    processes.start(0, "scheduler")
    first_operator = processes.operator(1)
    first_leader = history.wait("one leads", has_other_leader(""), 30)
    second_operator = processes.operator(2)
    run_with_client(cluster, lambda client: client.create(models.PODCLIQUESETS, build_set()))

    # Kill the leader in the middle of its work.
    history.wait("a pod is there", lambda view: bool(view.list("pods")), 30)
    first_operator.kill()
    second_leader = history.wait("two leads", has_other_leader(first_leader), LEASE_SECONDS + 10)
    history.wait("the set is available", available, 60)
    history.wait("every pod is bound", all_bound, 60)
    assert pods_created_and_deleted(history) == (PODS, 0)

    metrics = processes.metrics(2)
    assert metrics[f"leader_election_master_status['{LEASE}']"] == 1
    assert metrics["controller_runtime_reconcile_total['podclique', 'success']"] > 0
    assert metrics["rest_client_requests_total['200', 'PATCH']"] > 0
    scheduler = processes.metrics(0)
    assert scheduler["grove_scheduler_bindings_total['bound']"] == PODS
    assert scheduler["grove_scheduler_waiting_gangs"] == 0

    # Suspend the leader for longer than its lease. It must not write when it resumes, and must exit.
    first_operator = processes.operator(1)
    assert processes.metrics(1)[f"leader_election_master_status['{LEASE}']"] == 0
    os.kill(second_operator.pid, signal.SIGSTOP)
    third_leader = history.wait("one leads again", has_other_leader(second_leader), LEASE_SECONDS + 10)
    os.kill(second_operator.pid, signal.SIGCONT)
    assert second_operator.wait().code == 1
    assert json.loads(second_operator.log.read_text().splitlines()[-1])["msg"].startswith(
        "stopping: leadership lost: lease"
    )
    assert holder(history.view()) == third_leader

    # Stop the leader. Afterwards, no process holds the lease.
    assert first_operator.stop(10).code == 0
    assert history.wait("nobody leads", lambda view: holder(view) == "" or None, 10)
    assert pods_created_and_deleted(history) == (PODS, 0)

    for log in (first_operator.log, second_operator.log):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        subjects = [line for line in lines if "controller" in line]
        assert all({"controller", "namespace", "name"} <= line.keys() for line in subjects)
        assert len([line for line in lines if line["level"] == "info"]) < PODS, lines
