"""Tests that workloads other than Grove's reach the states of plain_workloads.yaml, as they do on a real cluster."""

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
from conformance.cluster.addons.volumes import CLAIMS, CLASSES, VOLUMES
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
    "StorageClass": CLASSES,
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
async def connected(cluster: Cluster) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="plain-workloads-test/1") as client:
        yield client


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path such as `status.conditions[type=Ready].status`; None if there is none."""
    for part in path.split("."):
        name, _, choice = part.rstrip("]").partition("[")
        value = (value or {}).get(name)
        if choice:
            key, _, expected = choice.partition("=")
            value = next((item for item in value or () if item[key] == expected), None)
    return value


async def until(read: Any, expected: object, seconds: float = 120) -> None:
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
    """Return, for each object of the file, the values at the paths in its entry."""
    states = []
    for entry in ENTRIES:
        resource, name = RESOURCES[entry["object"]["kind"]], entry["object"]["metadata"]["name"]
        item = orjson.loads(await client.get(resource, "default" if resource.namespaced else None, name))
        states.append({path: value_at(item, path) for path in entry["reaches"]})
    return states


def test_workloads_end_as_on_a_real_cluster(cluster: Cluster) -> None:
    async def play() -> None:
        async with connected(cluster) as client:
            await nodes.create_nodes(client, nodes.manifests("tiny", 2))
            for entry in ENTRIES:
                resource = RESOURCES[entry["object"]["kind"]]
                await client.create(resource, entry["object"], namespace="default" if resource.namespaced else None)
            expected = [entry["reaches"] for entry in ENTRIES]
            await until(lambda: observed_states(client), expected)

    asyncio.run(play())


def test_volumes_are_where_their_class_says_and_go_with_their_claims(cluster: Cluster) -> None:
    async def play() -> None:
        async with connected(cluster) as client:
            stored = {volume["spec"]["claimRef"]["name"]: volume for volume in await client.list(VOLUMES)}
            zones = {
                name: value_at(volume, "spec.nodeAffinity.required.nodeSelectorTerms")
                for name, volume in stored.items()
            }
            zone = [{"matchExpressions": [{"key": nodes.ZONE, "operator": "In", "values": ["zone-a"]}]}]
            assert zones == {"data-store-0": zone, "data-store-1": zone, "shared": None}
            await client.delete(CLAIMS, "default", "shared")

            async def claims() -> set[str]:
                return {volume["spec"]["claimRef"]["name"] for volume in await client.list(VOLUMES)}

            await until(claims, {"data-store-0", "data-store-1"})

    asyncio.run(play())


def kubectl(cluster: Cluster, *arguments: str) -> list[str]:
    """Return the lines that kubectl prints."""
    command = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.splitlines()


def top(cluster: Cluster, *arguments: str) -> list[list[str]]:
    """Return the rows of `kubectl top`, split into columns."""
    return [line.split() for line in kubectl(cluster, "top", *arguments, "--no-headers")]


def test_logs_and_exec_say_in_a_line_that_nothing_runs(cluster: Cluster) -> None:
    (log,) = kubectl(cluster, "logs", "alone")
    assert log == "grove-conformance: no log, for KWOK plays this pod and nothing runs in it"
    (refused,) = kubectl(cluster, "exec", "alone", "--", "touch", str(cluster.directory / "executed"))
    assert 'no exec found for container "main" in pod "default/alone"' in refused
    assert not (cluster.directory / "executed").exists()


def test_kubectl_top_shows_declared_usage(cluster: Cluster) -> None:
    assert [row[1:] for row in top(cluster, "pods", "-l", "app=busy")] == [["140m", "32Mi"]] * 2
    assert {name: cpu for name, cpu, *_ in top(cluster, "pods")}["alone"] == "1m"
    assert sorted(row[0] for row in top(cluster, "nodes")) == ["tiny-0", "tiny-1"]
    used = {row[0]: int(row[1].removesuffix("m")) for row in top(cluster, "nodes")}
    assert sum(used.values()) >= 280


def test_metrics_are_served_as_soon_as_their_process_runs_again(cluster: Cluster) -> None:
    cluster.kill(COMPONENT)
    assert top(cluster, "nodes")[0][0] in ("error:", "Error")
    cluster.start()
    assert sorted(row[0] for row in top(cluster, "nodes")) == ["tiny-0", "tiny-1"]


def test_metrics_are_for_the_api_server_alone(cluster: Cluster) -> None:
    """Other users have certificates of the same authority, but must ask the API server, which checks their rights."""
    url = f"https://127.0.0.1:{cluster.ports[Port.METRICS]}"

    async def direct() -> int:
        connection = config.load(kubeconfigs.role(cluster, "someone"))
        async with Client(dataclasses.replace(connection, server=url), user_agent="plain-workloads-test/1") as client:
            return (await client.exchange("GET", "/apis/metrics.k8s.io/v1beta1/nodes")).status

    assert asyncio.run(direct()) == 403
    assert answer_without_certificate(cluster) == b""


def answer_without_certificate(cluster: Cluster) -> bytes:
    """Return the first byte of the response to a client without a certificate; empty if there is no response."""
    tls = ssl.create_default_context(cafile=str(cluster.pki / "ca.crt"))
    address = ("127.0.0.1", cluster.ports[Port.METRICS])
    with (
        contextlib.suppress(ssl.SSLError, ConnectionError),
        socket.create_connection(address) as plain,
        tls.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        secured.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return secured.recv(1)
    return b""
