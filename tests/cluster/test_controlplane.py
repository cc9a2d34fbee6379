"""Tests of a real control plane: it starts, serves its user alone, recovers from killed components, and stops."""

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

START = """
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


def marked(uid: str) -> list[psutil.Process]:
    return [process for process, _ in processes.marked(lambda env: env.get(processes.CLUSTER) == uid)]


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
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


async def pods(client: Client, condition: Any) -> list[dict[str, Any]]:
    """Return the pods of the default namespace, once `condition` holds for them."""
    wait = AsyncRetrying(
        retry=retry_if_result(lambda listed: not condition(listed)), wait=wait_fixed(0.02), stop=stop_after_delay(120)
    )
    listed: list[dict[str, Any]] = await wait(client.list, PODS, "default")
    return listed


def test_it_is_well_and_every_component_runs(cluster: Cluster) -> None:
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
    listening = [
        connection.laddr
        for process in marked(cluster.uid)
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert {address.ip for address in listening} == {"127.0.0.1"}
    silent = (Port.ETCD_PEER, Port.METRICS, Port.FREE)
    assert {address.port for address in listening} == {cluster.ports[port] for port in Port if port not in silent}


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


def test_the_data_of_etcd_are_behind_the_clusters_folder(cluster: Cluster) -> None:
    sockets = [path for path in cluster.directory.rglob("*") if path.is_socket()]
    assert {path.name for path in sockets} == {"etcd.sock", "etcd-peer.sock"}
    assert stat.S_IMODE(cluster.directory.stat().st_mode) == 0o700


def test_credentials_are_for_the_user_alone(cluster: Cluster) -> None:
    secrets = [cluster.kubeconfig, *cluster.directory.rglob("*.key"), *cluster.directory.rglob("kubeconfig*")]
    assert len(secrets) >= 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}
    assert stat.S_IMODE(cluster.directory.stat().st_mode) == 0o700


def test_the_kubeconfig_needs_no_other_file(cluster: Cluster) -> None:
    assert str(cluster.directory) not in cluster.kubeconfig.read_text()


def test_its_processes_carry_the_marker_and_not_our_kwok_settings(cluster: Cluster) -> None:
    for process in marked(cluster.uid):
        environment = process.environ()
        assert environment[processes.STATE_ROOT] == str(cluster.directory.parent.parent)


def test_pods_become_ready_by_one_write_each_and_go_at_once(cluster: Cluster) -> None:
    async def play() -> None:
        fleet = nodes.manifests("tiny", 4, pool="one")
        async with client(cluster) as api:
            await nodes.create_nodes(api, fleet)
            await nodes.wait_until_schedulable(api, [node["metadata"]["name"] for node in fleet])
            mark = AuditLog.of(cluster).mark()
            place = {"nodeSelector": {nodes.POOL: "one"}, "tolerations": [nodes.toleration("one")]}
            init = [{"name": "first", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}]
            for number in range(10):
                await api.create(PODS, pod(f"p{number}", initContainers=init, **place))
            listed = await pods(api, lambda listed: len(listed) == 10 and all(map(is_ready, listed)))
            for one in listed:
                status = one["status"]
                assert status["phase"] == "Running" and one["spec"]["nodeName"].startswith("one-tiny-")
                assert status["hostIP"].startswith("172.") and len(status["podIPs"]) == 1
                assert "terminated" in status["initContainerStatuses"][0]["state"]
                assert "running" in status["initContainerStatuses"][1]["state"]
                assert all(entry["ready"] and entry["started"] for entry in status["containerStatuses"])
            assert len({one["status"]["podIP"] for one in listed}) == 10
            for number in range(10):
                await api.delete(PODS, "default", f"p{number}")
            await pods(api, lambda listed: not listed)
            await nodes.delete_nodes(api, [node["metadata"]["name"] for node in fleet])
        counts = wait_for(lambda: writes(mark))
        assert counts == {
            ("cluster-test", "create", "pods"): 10,
            ("kube-scheduler", "create", "pods/binding"): 10,
            ("kwok-controller", "patch", "pods/status"): 10,
            ("cluster-test", "delete", "pods"): 10,
            ("kwok-controller", "delete", "pods"): 10,
        }

    def writes(mark: int) -> dict[tuple[str, str, str], int]:
        """Return the numbers of accepted writes to pods; empty until the audit log has the last deletion."""
        counts: dict[tuple[str, str, str], int] = {}
        for key, number in AuditLog.of(cluster).count(mark).items():
            if key.code < 400 and key.resource.startswith("pods"):
                write = (key.program, key.verb, key.resource)
                counts[write] = counts.get(write, 0) + number
        return counts if counts.get(("kwok-controller", "delete", "pods")) == 10 else {}

    asyncio.run(play())


def test_held_pods_keep_the_status_and_the_life_that_a_test_gives_them(cluster: Cluster) -> None:
    status, deletion = "conformance.grove.io/hold-status", "conformance.grove.io/hold-deletion"

    async def play() -> None:
        fleet = nodes.manifests("tiny", 1, pool="two")
        place = {"nodeSelector": {nodes.POOL: "two"}, "tolerations": [nodes.toleration("two")]}
        async with client(cluster) as api:
            await nodes.create_nodes(api, fleet)
            await api.create(PODS, pod("held", annotations={status: "yes", deletion: "yes"}, **place))
            await api.create(PODS, pod("free", **place))
            listed = await pods(api, lambda listed: any(map(is_ready, listed)) and all(bound(one) for one in listed))
            assert [one["metadata"]["name"] for one in listed if is_ready(one)] == ["free"]
            await api.patch(PODS, "default", "held", {"metadata": {"annotations": {status: None}}})
            await pods(api, lambda listed: all(map(is_ready, listed)))
            await api.delete(PODS, "default", "held")
            await api.delete(PODS, "default", "free")
            (held_pod,) = await pods(api, lambda listed: len(listed) == 1)
            assert held_pod["metadata"]["name"] == "held" and held_pod["metadata"]["deletionTimestamp"]
            await api.patch(PODS, "default", "held", {"metadata": {"annotations": {deletion: None}}})
            await pods(api, lambda listed: not listed)

    def bound(one: dict[str, Any]) -> bool:
        return bool(one["spec"].get("nodeName"))

    asyncio.run(play())


def test_a_pod_that_lost_readiness_gets_it_back_with_its_restarts_kept(cluster: Cluster) -> None:
    async def play() -> None:
        fleet = nodes.manifests("tiny", 1, pool="three")
        place = {"nodeSelector": {nodes.POOL: "three"}, "tolerations": [nodes.toleration("three")]}
        async with client(cluster) as api:
            await nodes.create_nodes(api, fleet)
            await api.create(PODS, pod("ill", **place))
            (before,) = await pods(api, lambda listed: listed and is_ready(listed[0]))
            crashed = {"name": "main", "ready": False, "restartCount": 3, "image": "invented", "imageID": ""}
            crashed["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
            conditions = [one for one in before["status"]["conditions"] if one["type"] != "Ready"]
            conditions.append({"type": "Ready", "status": "False"})
            change = {"status": {"containerStatuses": [crashed], "conditions": conditions}}
            await api.patch(PODS, "default", "ill", change, subresource="status")
            (after,) = await pods(api, lambda listed: listed and is_ready(listed[0]))
            (container,) = after["status"]["containerStatuses"]
            assert container["restartCount"] == 3 and list(container["state"]) == ["running"]
            assert after["status"]["podIP"] == before["status"]["podIP"]
            await api.delete(PODS, "default", "ill")
            await pods(api, lambda listed: not listed)

    asyncio.run(play())


@pytest.mark.parametrize(
    "component",
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller", "startup-order"],
)
def test_a_killed_component_is_missed_and_starts_again(cluster: Cluster, component: str) -> None:
    before = cluster.monitor.pids()
    cluster.kill(component)
    assert component not in cluster.monitor.pids()
    assert cluster.monitor.missing() == [component] and not cluster.monitor.healthy()
    cluster.start()
    after = cluster.monitor.pids()
    assert cluster.monitor.healthy() and after[component] != before[component]
    assert {name for name in before if before[name] != after[name]} == {component}


def test_a_kwok_that_starts_again_plays_the_nodes_of_its_predecessor(cluster: Cluster) -> None:
    async def play() -> None:
        async with client(cluster) as api:
            await nodes.create_nodes(api, nodes.manifests("tiny", 1, "again"))
            await nodes.wait_until_schedulable(api, ["again-tiny-0"])
            await asyncio.to_thread(cluster.kill, "kwok-controller")
            await asyncio.to_thread(cluster.start)
            start = asyncio.get_running_loop().time()
            await api.create(PODS, pod("again", nodeName="again-tiny-0"))
            await pods(api, lambda listed: listed and is_ready(listed[0]))
            assert asyncio.get_running_loop().time() - start < 60  # the old lease would be valid for 200 s
            await api.delete(PODS, "default", "again")
            await pods(api, lambda listed: not listed)
            await nodes.delete_nodes(api, ["again-tiny-0"])

    asyncio.run(play())


def test_a_kill_of_what_does_not_run_is_the_users_error(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="kwok-controller"):
        cluster.kill("kubelet")


def test_a_cluster_can_be_found_by_name_and_its_name_is_taken(cluster: Cluster) -> None:
    state = StateRoot(cluster.directory.parent.parent)
    assert find("shared", state).uid == cluster.uid
    assert [one.uid for one in list_clusters(state)] == [cluster.uid]
    with pytest.raises(UsageError, match="already"):
        Cluster.up("shared", state=state)
    assert cluster.monitor.healthy()
    with pytest.raises(UsageError, match="shared"):
        find("other", state)


def test_down_leaves_nothing_and_takes_the_drivers_processes_along(state: StateRoot) -> None:
    cluster = Cluster.up("short", settings=ClusterSettings(scheduler=False, audit=False))
    assert "kube-scheduler" not in cluster.monitor.pids() and cluster.monitor.healthy()
    assert not cluster.audit_log.exists()
    assert all(is_free(cluster.port(index)) for index in range(10))
    driver = subprocess.Popen(["sleep", "1000"], env=os.environ | cluster.marker(), start_new_session=True)
    cluster.down()
    assert driver.wait(timeout=10) == -9
    assert not marked(cluster.uid) and not list(state.clusters.iterdir())
    assert cluster.directory not in Ports().claims().values()
    cluster.down()


def test_kube_scheduler_can_answer_to_another_name(state: StateRoot) -> None:
    settings = ClusterSettings(scheduler_name="other-scheduler")
    cluster = Cluster.up("named", settings=settings)

    async def play() -> None:
        async with client(cluster) as api:
            await nodes.create_nodes(api, nodes.manifests("tiny", 1))
            await api.create(PODS, pod("default"))
            await api.create(PODS, pod("named", schedulerName="other-scheduler"))
            listed = await pods(api, lambda listed: any(map(is_ready, listed)))
            assert [one["metadata"]["name"] for one in listed if one["spec"].get("nodeName")] == ["named"]

    asyncio.run(play())
    cluster.down()


def test_a_taken_port_is_the_users_error_and_leaves_nothing(state: StateRoot) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=str(port)) as caught:
            Cluster.up("clash", settings=ClusterSettings(apiserver_port=port))
    assert "\n" not in str(caught.value) and not state.names()


def test_a_port_that_somebody_takes_meanwhile_costs_another_block_and_not_the_cluster(
    state: StateRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed: list[int] = []
    claim = Ports.claim

    with ExitStack() as takers:

        def claim_and_take(ports: Ports, directory: Path) -> int:
            claimed.append(claim(ports, directory))
            if len(claimed) == 1:
                takers.enter_context(socket.create_server(("127.0.0.1", claimed[0] + Port.ETCD)))
            return claimed[-1]

        monkeypatch.setattr(Ports, "claim", claim_and_take)
        cluster = Cluster.up("retry")
    assert len(claimed) == 2 and cluster.record.ports == claimed[1] and cluster.monitor.healthy()
    cluster.down()
    assert cluster.directory not in Ports().claims().values()


def test_a_control_plane_that_dies_is_explained_and_leaves_nothing(
    state: StateRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Kubernetes v1.36.3 && exit\necho no such luck\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBE_APISERVER", str(broken))
    with pytest.raises(HarnessError, match="kube-apiserver died: no such luck"):
        Cluster.up("broken")
    assert not list(state.clusters.iterdir())
    assert not [one for one, _ in processes.marked(lambda env: env.get(processes.STATE_ROOT) == str(state.root))]
    assert not [folder for folder in Ports().claims().values() if folder.is_relative_to(state.root)]


def test_a_controller_manager_that_gives_up_waiting_for_a_slow_api_server_is_started_again(
    state: StateRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient, marker = tmp_path / "kube-controller-manager", tmp_path / "started"
    real = resolve_all().program("kube-controller-manager")
    impatient.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] || [ -e {marker} ] && exec {real} "$@"\n'
        f'touch {marker}\necho "failed to wait for apiserver being healthy: timed out"\nexit 1\n'
    )
    impatient.chmod(0o755)
    monkeypatch.setenv("GROVE_CONFORMANCE_ASSET_KUBE_CONTROLLER_MANAGER", str(impatient))
    cluster = Cluster.up("impatient")
    assert marker.exists() and cluster.monitor.healthy()
    cluster.down()


def test_two_clusters_of_two_processes_and_two_checkouts_come_up_at_once(tmp_path: Path, spawn: Spawn) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    workers = [spawn(START, "same", GROVE_CONFORMANCE_STATE=str(root)) for root in roots]
    lines = []
    for worker in workers:
        assert worker.stdout is not None
        lines.append(worker.stdout.readline().split())
    assert [line[0] for line in lines] == ["True", "True"]
    assert lines[0][1] != lines[1][1]
    first, second = (find("same", StateRoot(root)) for root in roots)
    assert first.uid != second.uid
    first.down()
    assert second.monitor.healthy() and not marked(first.uid)
    second.down()
    assert not list((roots[1] / "clusters").iterdir())
