"""Workloads that are not of Grove end on the fake cluster as on a real one: plain_workloads.yaml says how."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from conformance.cluster import nodes
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
    "DaemonSet": Resource("apps", "v1", "daemonsets", "DaemonSet"),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster.up("plain", settings=ClusterSettings(), state=State(tmp_path_factory.mktemp("state") / "root"))
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


def test_workloads_end_as_on_a_real_cluster(cluster: Cluster) -> None:
    async def observed(client: Client) -> Mapping[str, Mapping[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for entry in ENTRIES:
            name, kind = entry["object"]["metadata"]["name"], entry["object"]["kind"]
            (item,) = (o for o in await client.list(RESOURCES[kind], "default") if o["metadata"]["name"] == name)
            found[name] = {path: at(item, path) for path in entry["reaches"]}
        return found

    async def play() -> None:
        async with connected(cluster) as client:
            await nodes.create_nodes(client, nodes.manifests("tiny", 2))
            for entry in ENTRIES:
                await client.create(RESOURCES[entry["object"]["kind"]], entry["object"], namespace="default")
            wanted = {entry["object"]["metadata"]["name"]: entry["reaches"] for entry in ENTRIES}
            await until(lambda: observed(client), wanted)

    asyncio.run(play())
