"""Tests of a real control plane: it starts, serves only its user, recovers from killed components, and stops."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster import nodes, processes
from conformance.cluster.assets import resolve_all
from conformance.cluster.audit import AuditLog
from conformance.cluster.controlplane import Cluster, find, list_clusters
from conformance.cluster.ports import Port, Ports, is_free
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.errors import HarnessError, UsageError
from kube.client import Client
from kube.resource import PODS
from tests.cluster.waiting import Spawn, wait_for

pytestmark = pytest.mark.cluster

START_SOURCE = """
import sys
from conformance.cluster.controlplane import Cluster
cluster = Cluster.up(sys.argv[1])
print(cluster.monitor.healthy(), cluster.ports[0], flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster.up("shared", state=StateRoot(tmp_path_factory.mktemp("state") / "root"))
    yield cluster
    cluster.down()


def marked_processes(uid: str) -> list[psutil.Process]:
    return [process for process, _ in processes.find_marked(lambda env: env.get(processes.CLUSTER) == uid)]


def client(cluster: Cluster) -> Client:
    return Client.from_kubeconfig(cluster.kubeconfig, user_agent="cluster-test/1")


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": spec.pop("annotations", {})},
        "spec": {"containers": [{"name": "main", "image": "invented"}], **spec},
    }


def is_ready(pod: dict[str, Any]) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod["status"].get("conditions", [])
    )


async def wait_for_pods(client: Client, condition: Any) -> list[dict[str, Any]]:
    """Wait until `condition` holds for the pods of the default namespace, and return the pods."""
    wait = AsyncRetrying(
        retry=retry_if_result(lambda items: not condition(items)), wait=wait_fixed(0.02), stop=stop_after_delay(120)
    )
    items: list[dict[str, Any]] = await wait(client.list, PODS, "default")
    return items


def test_the_cluster_is_healthy_and_every_component_runs(cluster: Cluster) -> None:
    assert cluster.monitor.complaint() == "" and cluster.monitor.healthy()
    assert set(cluster.monitor.pids()) == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok-controller",
        "startup-order",
    }
    assert cluster.record.phase == "ready"


def test_the_api_server_reports_the_pinned_version_to_the_kubeconfig(cluster: Cluster) -> None:
    async def version() -> dict[str, str]:
        async with client(cluster) as api:
            answer: dict[str, str] = json.loads(await api.request("GET", "/version"))
            return answer

    assert asyncio.run(version())["gitVersion"] == f"v{cluster.record.versions['kubernetes']}"


def test_everything_listens_on_loopback_only(cluster: Cluster) -> None:
    addresses = [
        connection.laddr
        for process in marked_processes(cluster.uid)
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert {address.ip for address in addresses} == {"127.0.0.1"}
    ports_without_listener = (Port.ETCD_PEER, Port.METRICS, Port.GPU_METRICS, Port.FIRST_DRIVER_PORT)
    assert {address.port for address in addresses} == {
        cluster.ports[port] for port in Port if port not in ports_without_listener
    }


@pytest.mark.parametrize(
    ("path", "status"),
    [("/health", 200), ("/metrics", 200), ("/v3/kv/range", 404), ("/v3/auth/enable", 404), ("/", 404)],
)
def test_the_port_of_etcd_gives_no_data_to_other_users(cluster: Cluster, path: str, status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.ports[Port.ETCD], timeout=5)
    body = json.dumps({"key": "AA==", "range_end": "AA=="}) if path.startswith("/v3") else None
    connection.request("POST" if body else "GET", path, body)
    assert connection.getresponse().status == status
    connection.close()


def test_the_sockets_of_etcd_are_in_the_clusters_private_folder(cluster: Cluster) -> None:
    sockets = [path for path in cluster.directory.rglob("*") if path.is_socket()]
    assert {path.name for path in sockets} == {"etcd.sock", "etcd-peer.sock"}
    assert stat.S_IMODE(cluster.directory.stat().st_mode) == 0o700


def test_only_the_user_can_read_credentials(cluster: Cluster) -> None:
    secrets = [cluster.kubeconfig, *cluster.directory.rglob("*.key"), *cluster.directory.rglob("kubeconfig*")]
    assert len(secrets) >= 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}
    assert stat.S_IMODE(cluster.directory.stat().st_mode) == 0o700


def test_the_kubeconfig_needs_no_other_file(cluster: Cluster) -> None:
    assert str(cluster.directory) not in cluster.kubeconfig.read_text()


def test_processes_of_a_cluster_carry_its_marker(cluster: Cluster) -> None:
    for process in marked_processes(cluster.uid):
        environment = process.environ()
        assert environment[processes.STATE_ROOT] == str(cluster.directory.parent.parent)


def test_each_pod_becomes_ready_by_one_write_and_is_deleted_at_once(cluster: Cluster) -> None:
    async def run_test() -> None:
        node_manifests = nodes.manifests("tiny", 4, pool="one")
        async with client(cluster) as api:
            await nodes.create_nodes(api, node_manifests)
            await nodes.wait_until_schedulable(api, [node["metadata"]["name"] for node in node_manifests])
            mark = AuditLog.of(cluster).mark()
            placement = {"nodeSelector": {nodes.POOL: "one"}, "tolerations": [nodes.toleration("one")]}
            init = [{"name": "first", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}]
            for number in range(10):
                await api.create(PODS, pod(f"p{number}", initContainers=init, **placement))
            items = await wait_for_pods(api, lambda items: len(items) == 10 and all(map(is_ready, items)))
            for item in items:
                status = item["status"]
                assert status["phase"] == "Running" and item["spec"]["nodeName"].startswith("one-tiny-")
                assert status["hostIP"].startswith("172.") and len(status["podIPs"]) == 1
                assert "terminated" in status["initContainerStatuses"][0]["state"]
                assert "running" in status["initContainerStatuses"][1]["state"]
                assert all(entry["ready"] and entry["started"] for entry in status["containerStatuses"])
            assert len({item["status"]["podIP"] for item in items}) == 10
            for number in range(10):
                await api.delete(PODS, "default", f"p{number}")
            await wait_for_pods(api, lambda items: not items)
            await nodes.delete_nodes(api, [node["metadata"]["name"] for node in node_manifests])
        counts = wait_for(lambda: writes(mark))
        assert counts == {
            ("cluster-test", "create", "pods"): 10,
            ("kube-scheduler", "create", "pods/binding"): 10,
            ("kwok-controller", "patch", "pods/status"): 10,
            ("cluster-test", "delete", "pods"): 10,
            ("kwok-controller", "delete", "pods"): 10,
        }

    def writes(mark: int) -> dict[tuple[str, str, str], int]:
        """Return the numbers of accepted writes to pods, or nothing until the audit log has the last deletion."""
        counts: dict[tuple[str, str, str], int] = {}
        for key, number in AuditLog.of(cluster).count(mark).items():
            if key.code < 400 and key.resource.startswith("pods"):
                write = (key.program, key.verb, key.resource)
                counts[write] = counts.get(write, 0) + number
        return counts if counts.get(("kwok-controller", "delete", "pods")) == 10 else {}

    asyncio.run(run_test())


def test_held_pods_keep_their_status_and_are_not_deleted(cluster: Cluster) -> None:
    hold_status, hold_deletion = "conformance.grove.io/hold-status", "conformance.grove.io/hold-deletion"

    async def run_test() -> None:
        node_manifests = nodes.manifests("tiny", 1, pool="two")
        placement = {"nodeSelector": {nodes.POOL: "two"}, "tolerations": [nodes.toleration("two")]}
        async with client(cluster) as api:
            await nodes.create_nodes(api, node_manifests)
            await api.create(PODS, pod("held", annotations={hold_status: "yes", hold_deletion: "yes"}, **placement))
            await api.create(PODS, pod("free", **placement))
            items = await wait_for_pods(
                api, lambda items: any(map(is_ready, items)) and all(is_bound(item) for item in items)
            )
            assert [item["metadata"]["name"] for item in items if is_ready(item)] == ["free"]
            await api.patch(PODS, "default", "held", {"metadata": {"annotations": {hold_status: None}}})
            await wait_for_pods(api, lambda items: all(map(is_ready, items)))
            await api.delete(PODS, "default", "held")
            await api.delete(PODS, "default", "free")
            (held_pod,) = await wait_for_pods(api, lambda items: len(items) == 1)
            assert held_pod["metadata"]["name"] == "held" and held_pod["metadata"]["deletionTimestamp"]
            await api.patch(PODS, "default", "held", {"metadata": {"annotations": {hold_deletion: None}}})
            await wait_for_pods(api, lambda items: not items)

    def is_bound(item: dict[str, Any]) -> bool:
        return bool(item["spec"].get("nodeName"))

    asyncio.run(run_test())


def test_a_pod_that_lost_readiness_recovers_and_keeps_its_restart_count(cluster: Cluster) -> None:
    async def run_test() -> None:
        node_manifests = nodes.manifests("tiny", 1, pool="three")
        placement = {"nodeSelector": {nodes.POOL: "three"}, "tolerations": [nodes.toleration("three")]}
        async with client(cluster) as api:
            await nodes.create_nodes(api, node_manifests)
            await api.create(PODS, pod("ill", **placement))
            (ready_pod,) = await wait_for_pods(api, lambda items: items and is_ready(items[0]))
            crashed_container = {"name": "main", "ready": False, "restartCount": 3, "image": "invented", "imageID": ""}
            crashed_container["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
            conditions = [condition for condition in ready_pod["status"]["conditions"] if condition["type"] != "Ready"]
            conditions.append({"type": "Ready", "status": "False"})
            change = {"status": {"containerStatuses": [crashed_container], "conditions": conditions}}
            await api.patch(PODS, "default", "ill", change, subresource="status")
            (recovered_pod,) = await wait_for_pods(api, lambda items: items and is_ready(items[0]))
            (container,) = recovered_pod["status"]["containerStatuses"]
            assert container["restartCount"] == 3 and list(container["state"]) == ["running"]
            assert recovered_pod["status"]["podIP"] == ready_pod["status"]["podIP"]
            await api.delete(PODS, "default", "ill")
            await wait_for_pods(api, lambda items: not items)

    asyncio.run(run_test())


@pytest.mark.parametrize(
    "component",
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller", "startup-order"],
)
def test_a_killed_component_is_reported_missing_and_restarts(cluster: Cluster, component: str) -> None:
    pids_before = cluster.monitor.pids()
    cluster.kill(component)
    assert component not in cluster.monitor.pids()
    assert cluster.monitor.missing() == [component] and not cluster.monitor.healthy()
    cluster.start()
    pids_after = cluster.monitor.pids()
    assert cluster.monitor.healthy() and pids_after[component] != pids_before[component]
    assert {name for name in pids_before if pids_before[name] != pids_after[name]} == {component}


def test_a_restarted_kwok_simulates_the_nodes_of_its_predecessor(cluster: Cluster) -> None:
    async def run_test() -> None:
        async with client(cluster) as api:
            await nodes.create_nodes(api, nodes.manifests("tiny", 1, "again"))
            await nodes.wait_until_schedulable(api, ["again-tiny-0"])
            await asyncio.to_thread(cluster.kill, "kwok-controller")
            await asyncio.to_thread(cluster.start)
            start = asyncio.get_running_loop().time()
            await api.create(PODS, pod("again", nodeName="again-tiny-0"))
            await wait_for_pods(api, lambda items: items and is_ready(items[0]))
            assert asyncio.get_running_loop().time() - start < 60  # the old lease would be valid for 200 s
            await api.delete(PODS, "default", "again")
            await wait_for_pods(api, lambda items: not items)
            await nodes.delete_nodes(api, ["again-tiny-0"])

    asyncio.run(run_test())


def test_killing_an_unknown_component_is_a_usage_error(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="kwok-controller"):
        cluster.kill("kubelet")


def test_a_cluster_is_found_by_its_name_and_no_other_can_have_that_name(cluster: Cluster) -> None:
    state = StateRoot(cluster.directory.parent.parent)
    assert find("shared", state).uid == cluster.uid
    assert [found_cluster.uid for found_cluster in list_clusters(state)] == [cluster.uid]
    with pytest.raises(UsageError, match="already"):
        Cluster.up("shared", state=state)
    assert cluster.monitor.healthy()
    with pytest.raises(UsageError, match="shared"):
        find("other", state)


def test_down_leaves_nothing_and_ends_the_drivers_processes(state: StateRoot) -> None:
    cluster = Cluster.up("short", settings=ClusterSettings(scheduler=False, audit=False))
    assert "kube-scheduler" not in cluster.monitor.pids() and cluster.monitor.healthy()
    assert not cluster.audit_log.exists()
    assert all(is_free(cluster.port(index)) for index in range(10))
    driver = subprocess.Popen(["sleep", "1000"], env=os.environ | cluster.marker(), start_new_session=True)
    cluster.down()
    assert driver.wait(timeout=10) == -9
    assert not marked_processes(cluster.uid) and not list(state.clusters.iterdir())
    assert cluster.directory not in Ports().claims().values()
    cluster.down()


def test_kube_scheduler_can_have_another_name(state: StateRoot) -> None:
    settings = ClusterSettings(scheduler_name="other-scheduler")
    cluster = Cluster.up("named", settings=settings)

    async def run_test() -> None:
        async with client(cluster) as api:
            await nodes.create_nodes(api, nodes.manifests("tiny", 1))
            await api.create(PODS, pod("default"))
            await api.create(PODS, pod("named", schedulerName="other-scheduler"))
            items = await wait_for_pods(api, lambda items: any(map(is_ready, items)))
            assert [item["metadata"]["name"] for item in items if item["spec"].get("nodeName")] == ["named"]

    asyncio.run(run_test())
    cluster.down()


def test_a_port_in_use_is_a_usage_error_and_leaves_nothing(state: StateRoot) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=str(port)) as caught:
            Cluster.up("clash", settings=ClusterSettings(apiserver_port=port))
    assert "\n" not in str(caught.value) and not state.names()


def test_a_cluster_gets_another_port_block_if_a_port_is_taken_during_the_start(
    state: StateRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed_ports: list[int] = []
    claim = Ports.claim

    with ExitStack() as occupied_ports:

        def claim_and_take(ports: Ports, directory: Path) -> int:
            claimed_ports.append(claim(ports, directory))
            if len(claimed_ports) == 1:
                occupied_ports.enter_context(socket.create_server(("127.0.0.1", claimed_ports[0] + Port.ETCD)))
            return claimed_ports[-1]

        monkeypatch.setattr(Ports, "claim", claim_and_take)
        cluster = Cluster.up("retry")
    assert len(claimed_ports) == 2 and cluster.record.ports == claimed_ports[1] and cluster.monitor.healthy()
    cluster.down()
    assert cluster.directory not in Ports().claims().values()


def test_the_failure_of_a_control_plane_is_explained_and_leaves_nothing(
    state: StateRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "kube-apiserver"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo Kubernetes v1.36.3 && exit\necho no such luck\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBE_APISERVER", str(program))
    with pytest.raises(HarnessError, match="kube-apiserver died: no such luck"):
        Cluster.up("broken")
    assert not list(state.clusters.iterdir())
    assert not [
        process for process, _ in processes.find_marked(lambda env: env.get(processes.STATE_ROOT) == str(state.root))
    ]
    assert not [folder for folder in Ports().claims().values() if folder.is_relative_to(state.root)]


def test_a_controller_manager_that_gives_up_waiting_for_a_slow_api_server_is_restarted(
    state: StateRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, marker = tmp_path / "kube-controller-manager", tmp_path / "started"
    real_program = resolve_all().program("kube-controller-manager")
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] || [ -e {marker} ] && exec {real_program} "$@"\n'
        f'touch {marker}\necho "failed to wait for apiserver being healthy: timed out"\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBE_CONTROLLER_MANAGER", str(program))
    cluster = Cluster.up("impatient")
    assert marker.exists() and cluster.monitor.healthy()
    cluster.down()


def test_clusters_of_two_processes_and_two_checkouts_start_at_the_same_time(tmp_path: Path, spawn: Spawn) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    workers = [spawn(START_SOURCE, "same", GROVE_CONFORMANCE_STATE=str(root)) for root in roots]
    lines = []
    for worker in workers:
        assert worker.stdout is not None
        lines.append(worker.stdout.readline().split())
    assert [line[0] for line in lines] == ["True", "True"]
    assert lines[0][1] != lines[1][1]
    first_cluster, second_cluster = (find("same", StateRoot(root)) for root in roots)
    assert first_cluster.uid != second_cluster.uid
    first_cluster.down()
    assert second_cluster.monitor.healthy() and not marked_processes(first_cluster.uid)
    second_cluster.down()
    assert not list((roots[1] / "clusters").iterdir())
