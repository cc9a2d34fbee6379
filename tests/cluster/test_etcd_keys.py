"""Tests that the removal of a namespace in etcd leaves nothing of it, touches nothing else, and is seen by watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.cluster import etcd_keys, nodes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from kube.client import Client
from kube.resource import NAMESPACES, NODES, Resource

NUMBER = 3
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def test_owners_are_removed_before_their_dependents_and_other_keys_stay() -> None:
    keys = [
        "/registry/pods/scene-1/a",
        "/registry/pods/scene-10/a",
        "/registry/services/specs/scene-1/a",
        "/registry/grove.io/podcliques/scene-1/a",
        "/registry/grove.io/podcliquesets/scene-1/a",
        "/registry/namespaces/scene-1",
        "/registry/namespaces/scene-10",
        "/registry/minions/one",
        "/registry/minions/other",
        "/registry/leases/kube-node-lease/one",
        "/registry/leases/kube-system/scene-1",
        "/registry/clusterroles/scene-1",
    ]
    assert etcd_keys.removal_order(keys, {"scene-1"}, {"one"}) == [
        "/registry/namespaces/scene-1",
        "/registry/grove.io/podcliquesets/scene-1/a",
        "/registry/grove.io/podcliques/scene-1/a",
        "/registry/pods/scene-1/a",
        "/registry/services/specs/scene-1/a",
        "/registry/minions/one",
        "/registry/leases/kube-node-lease/one",
    ]


@pytest.mark.cluster
def test_watches_show_each_removal_with_a_version_of_its_own(tmp_path: Path) -> None:
    async def run_test() -> None:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="keys-test/1") as client:
            (node,) = nodes.manifests("tiny", 1, pool="keys")
            await nodes.create_nodes(client, [node])
            for namespace in ("removed", "kept"):
                await client.create(NAMESPACES, {"metadata": {"name": namespace}})
                for number in range(NUMBER):
                    metadata = {"name": f"map-{number}", "namespace": namespace, "labels": {"test": "keys"}}
                    # Through the API, an object with a finalizer would stay.
                    await client.create(CONFIG_MAPS, {"metadata": {**metadata, "finalizers": ["example.com/keep"]}})
            version = orjson.loads(await client.request("GET", CONFIG_MAPS.path("removed")))["metadata"][
                "resourceVersion"
            ]
            etcd_keys.remove(cluster.workspace, {"removed"}, {node["metadata"]["name"]})
            removed = [event async for event in events(client, "removed", version)]
            assert {event["type"] for event in removed} == {"DELETED"}
            assert len({event["object"]["metadata"]["resourceVersion"] for event in removed}) == NUMBER
            assert len(await client.list(CONFIG_MAPS, "kept", selector="test=keys")) == NUMBER
            assert await client.get_or_none(NAMESPACES, None, "removed") is None
            assert await client.get_or_none(NODES, None, node["metadata"]["name"]) is None

    cluster = Cluster.up("keys", settings=ClusterSettings(), state=StateRoot(tmp_path / "state"))
    try:
        asyncio.run(run_test())
    finally:
        cluster.down()


async def events(client: Client, namespace: str, version: str) -> AsyncIterator[dict[str, Any]]:
    """Yield the first events of the config maps that the test has created, from a version on."""
    parameters = {"watch": "1", "resourceVersion": version, "labelSelector": "test=keys", "timeoutSeconds": "20"}
    async with client.stream(CONFIG_MAPS.path(namespace), parameters) as reader:
        for _ in range(NUMBER):
            yield orjson.loads(await reader.readline())
