"""Tests that workloads other than Grove's reach the states in plain_workloads.yaml, as they do on a real cluster."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster import kubeconfigs, nodes
from conformance.cluster.addons.volumes import CLAIMS, STORAGE_CLASSES, VOLUMES
from conformance.cluster.controlplane import Cluster
from conformance.cluster.kubelet_sim.process import COMPONENT
from conformance.cluster.ports import Port
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from kube import config
from kube.client import Client
from kube.resource import PODS, Resource

pytestmark = pytest.mark.cluster
Document = dict[str, Any]
ENTRIES = yaml.safe_load(Path(__file__).with_name("plain_workloads.yaml").read_text("utf-8"))
RESOURCES = {
    "Pod": PODS,
    "Job": Resource("batch", "v1", "jobs", "Job"),
    "StatefulSet": Resource("apps", "v1", "statefulsets", "StatefulSet"),
    "PersistentVolumeClaim": CLAIMS,
    "StorageClass": STORAGE_CLASSES,
    "Deployment": Resource("apps", "v1", "deployments", "Deployment"),
    "HorizontalPodAutoscaler": Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    "DaemonSet": Resource("apps", "v1", "daemonsets", "DaemonSet"),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster.up(
        "plain", settings=ClusterSettings(addons=True), state=StateRoot(tmp_path_factory.mktemp("state") / "root")
    )
    yield cluster
    cluster.down()


@asynccontextmanager
async def connect(cluster: Cluster) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="plain-workloads-test/1") as client:
        yield client


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path such as `status.conditions[type=Ready].status`, or None if the path does not exist."""
    for part in path.split("."):
        name, _, choice = part.rstrip("]").partition("[")
        value = (value or {}).get(name)
        if choice:
            key, _, expected = choice.partition("=")
            value = next((item for item in value or () if item[key] == expected), None)
    return value


async def wait_for_value(read: Any, expected: object, seconds: float = 120) -> None:
    """Wait until `read()` returns the expected value."""
    values: list[object] = []

    async def differs() -> bool:
        values.append(await read())
        return values[-1] != expected

    try:
        await AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(seconds))(differs)
    except RetryError:
        assert values[-1] == expected


async def observed_states(client: Client) -> list[Document]:
    """Return the values at the paths in each entry of the file, read from the entry's object."""
    states = []
    for entry in ENTRIES:
        resource, name = RESOURCES[entry["object"]["kind"]], entry["object"]["metadata"]["name"]
        item = orjson.loads(await client.get(resource, "default" if resource.namespaced else None, name))
        states.append({path: value_at(item, path) for path in entry["reaches"]})
    return states


def test_workloads_reach_the_same_states_as_on_a_real_cluster(cluster: Cluster) -> None:
    async def run_test() -> None:
        async with connect(cluster) as client:
            await nodes.create_nodes(client, nodes.manifests("tiny", 2))
            for entry in ENTRIES:
                resource = RESOURCES[entry["object"]["kind"]]
                await client.create(resource, entry["object"], namespace="default" if resource.namespaced else None)
            expected = [entry["reaches"] for entry in ENTRIES]
            await wait_for_value(lambda: observed_states(client), expected)

    asyncio.run(run_test())


def test_volumes_have_the_zone_of_their_class_and_are_deleted_with_their_claims(cluster: Cluster) -> None:
    async def run_test() -> None:
        async with connect(cluster) as client:
            volumes = {volume["spec"]["claimRef"]["name"]: volume for volume in await client.list(VOLUMES)}
            terms_by_claim = {
                name: value_at(volume, "spec.nodeAffinity.required.nodeSelectorTerms")
                for name, volume in volumes.items()
            }
            expected_terms = [{"matchExpressions": [{"key": nodes.ZONE, "operator": "In", "values": ["zone-a"]}]}]
            assert terms_by_claim == {"data-store-0": expected_terms, "data-store-1": expected_terms, "shared": None}
            await client.delete(CLAIMS, "default", "shared")

            async def claims() -> set[str]:
                return {volume["spec"]["claimRef"]["name"] for volume in await client.list(VOLUMES)}

            await wait_for_value(claims, {"data-store-0", "data-store-1"})

    asyncio.run(run_test())


def run_kubectl(cluster: Cluster, *arguments: str) -> list[str]:
    """Return the lines that kubectl prints."""
    command = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig), *arguments]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return result.stdout.splitlines()


def top_rows(cluster: Cluster, *arguments: str) -> list[list[str]]:
    """Return the rows of `kubectl top`, split into columns."""
    return [line.split() for line in run_kubectl(cluster, "top", *arguments, "--no-headers")]


def test_logs_and_exec_report_in_one_line_that_nothing_runs(cluster: Cluster) -> None:
    (log,) = run_kubectl(cluster, "logs", "alone")
    assert log == "grove-conformance: no log, for KWOK plays this pod and nothing runs in it"
    (error,) = run_kubectl(cluster, "exec", "alone", "--", "touch", str(cluster.directory / "executed"))
    assert 'no exec found for container "main" in pod "default/alone"' in error
    assert not (cluster.directory / "executed").exists()


def test_kubectl_top_shows_declared_usage(cluster: Cluster) -> None:
    assert [row[1:] for row in top_rows(cluster, "pods", "-l", "app=busy")] == [["140m", "32Mi"]] * 2
    assert {name: cpu for name, cpu, *_ in top_rows(cluster, "pods")}["alone"] == "1m"
    assert sorted(row[0] for row in top_rows(cluster, "nodes")) == ["tiny-0", "tiny-1"]
    cpu_by_node = {row[0]: int(row[1].removesuffix("m")) for row in top_rows(cluster, "nodes")}
    assert sum(cpu_by_node.values()) >= 280


def test_metrics_are_served_as_soon_as_their_process_is_restarted(cluster: Cluster) -> None:
    cluster.kill(COMPONENT)
    assert top_rows(cluster, "nodes")[0][0] in ("error:", "Error")
    cluster.start()
    assert sorted(row[0] for row in top_rows(cluster, "nodes")) == ["tiny-0", "tiny-1"]


def test_only_the_api_server_can_read_metrics(cluster: Cluster) -> None:
    """Other users have certificates from the same authority, but must use the API server, which checks their
    permissions."""
    url = f"https://127.0.0.1:{cluster.ports[Port.METRICS]}"

    async def request_directly() -> int:
        connection = config.load(kubeconfigs.role_kubeconfig(cluster, "someone"))
        async with Client(dataclasses.replace(connection, server=url), user_agent="plain-workloads-test/1") as client:
            return (await client.exchange("GET", "/apis/metrics.k8s.io/v1beta1/nodes")).status

    assert asyncio.run(request_directly()) == 403
    assert response_without_certificate(cluster) == b""


def response_without_certificate(cluster: Cluster) -> bytes:
    """Return the first byte of the response to a client without a certificate; empty if there is no response."""
    tls_context = ssl.create_default_context(cafile=str(cluster.pki / "ca.crt"))
    address = ("127.0.0.1", cluster.ports[Port.METRICS])
    with (
        contextlib.suppress(ssl.SSLError, ConnectionError),
        socket.create_connection(address) as client_socket,
        tls_context.wrap_socket(client_socket, server_hostname="127.0.0.1") as tls_socket,
    ):
        tls_socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return tls_socket.recv(1)
    return b""
