"""Workloads that are not of Grove end on the fake cluster as on a real one: plain_workloads.yaml says how."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster import nodes
from conformance.cluster.addons.volumes import CLAIMS, CLASSES, VOLUMES
from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import State
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
    "DaemonSet": Resource("apps", "v1", "daemonsets", "DaemonSet"),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster.up(
        "plain", settings=ClusterSettings(addons=True), state=State(tmp_path_factory.mktemp("state") / "root")
    )
    yield cluster
    cluster.down()


@asynccontextmanager
async def connected(cluster: Cluster) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="plain-workloads-test/1") as client:
        yield client


def at(value: Any, path: str) -> Any:
    """The value at a path such as `status.conditions[type=Ready].status`; None if there is none."""
    for part in path.split("."):
        name, _, choice = part.rstrip("]").partition("[")
        value = (value or {}).get(name)
        if choice:
            key, _, wanted = choice.partition("=")
            value = next((item for item in value or () if item[key] == wanted), None)
    return value


async def until(read: Any, wanted: object, seconds: float = 120) -> None:
    """Wait until `read()` returns the wanted value."""
    seen: list[object] = []

    async def differs() -> bool:
        seen.append(await read())
        return seen[-1] != wanted

    try:
        await AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(seconds))(differs)
    except RetryError:
        assert seen[-1] == wanted


async def observed(client: Client) -> dict[str, Document]:
    """Each object of the file, as far as its entry reads it."""
    found: dict[str, Document] = {}
    for entry in ENTRIES:
        resource, name = RESOURCES[entry["object"]["kind"]], entry["object"]["metadata"]["name"]
        item = orjson.loads(await client.get(resource, "default" if resource.namespaced else None, name))
        found[name] = {path: at(item, path) for path in entry["reaches"]}
    return found


def test_workloads_end_as_on_a_real_cluster(cluster: Cluster) -> None:
    async def play() -> None:
        async with connected(cluster) as client:
            await nodes.create_nodes(client, nodes.manifests("tiny", 2))
            for entry in ENTRIES:
                resource = RESOURCES[entry["object"]["kind"]]
                await client.create(resource, entry["object"], namespace="default" if resource.namespaced else None)
            wanted = {entry["object"]["metadata"]["name"]: entry["reaches"] for entry in ENTRIES}
            await until(lambda: observed(client), wanted)

    asyncio.run(play())


def test_volumes_are_where_their_class_says_and_go_with_their_claims(cluster: Cluster) -> None:
    async def play() -> None:
        async with connected(cluster) as client:
            stored = {volume["spec"]["claimRef"]["name"]: volume for volume in await client.list(VOLUMES)}
            zones = {
                name: at(volume, "spec.nodeAffinity.required.nodeSelectorTerms") for name, volume in stored.items()
            }
            zone = [{"matchExpressions": [{"key": nodes.ZONE, "operator": "In", "values": ["zone-a"]}]}]
            assert zones == {"data-store-0": zone, "data-store-1": zone, "shared": None}
            await client.delete(CLAIMS, "default", "shared")

            async def claims() -> set[str]:
                return {volume["spec"]["claimRef"]["name"] for volume in await client.list(VOLUMES)}

            await until(claims, {"data-store-0", "data-store-1"})

    asyncio.run(play())
