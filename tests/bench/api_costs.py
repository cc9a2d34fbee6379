"""`make bench`: measures the cost of requests, on a dedicated control plane.

The table in docs/design.md, section "Client and serialization", contains the results.

The figure is the CPU time of the API server rather than elapsed time, because CPU is the scarcest resource of a laptop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import orjson
import psutil
import yaml
from kubernetes import client as official
from kubernetes import config

from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from kube.client import APPLY_PATCH, JSON_PATCH, STRATEGIC_PATCH, Client
from kube.errors import ApiError
from kube.resource import CRDS, PODS
from reference_impl.api import crds, models
from reference_impl.api.pods import Pod

REQUEST_COUNT, IN_FLIGHT = 600, 16
GATE = "bench/gate"
Make = Callable[[int], Awaitable[bytes]]


def pod(number: int) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "env": [{"name": f"E{n}", "value": "1"} for n in range(8)]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "default", "labels": {f"l{n}": "v" for n in range(8)}},
        "spec": {"schedulingGates": [{"name": GATE}], "containers": [container]},
    }


def clique(number: int) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "1Mi"}}}]}
    return {
        "apiVersion": models.PODCLIQUES.api_version,
        "kind": "PodClique",
        "metadata": {"name": f"q{number}", "namespace": "default", "finalizers": ["bench/finalizer"]},
        "spec": {"roleName": "r", "replicas": 2, "minAvailable": 2, "podSpec": spec},
    }


def status(ready: int) -> dict[str, Any]:
    condition = {"status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    counts = {"replicas": 2, "readyReplicas": ready, "scheduledReplicas": 2, "updatedReplicas": 2}
    return {**counts, "conditions": [{"type": condition_type, **condition} for condition_type in ("A", "B")]}


class Environment:
    def __init__(self, cluster: Cluster, client: Client) -> None:
        self._client = client
        self._server = psutil.Process(cluster.monitor.pids()["kube-apiserver"])

    def _cpu(self) -> float:
        times = self._server.cpu_times()
        return float(times.user + times.system)

    async def measure(self, name: str, make: Make) -> list[Any]:
        """Make REQUEST_COUNT requests, print their cost and return the responses."""
        limit = asyncio.Semaphore(IN_FLIGHT)

        async def send(number: int) -> bytes:
            async with limit:
                return await make(number)

        start, cpu = time.monotonic(), self._cpu()
        answers = await asyncio.gather(*(send(number) for number in range(REQUEST_COUNT)))
        milliseconds, rate = 1000 * (self._cpu() - cpu) / REQUEST_COUNT, REQUEST_COUNT / (time.monotonic() - start)
        print(f"{name:45}{milliseconds:6.2f} ms CPU of the API server each{rate:7.0f}/s", flush=True)
        return [orjson.loads(answer) for answer in answers]

    async def writes(self) -> None:
        client, cliques = self._client, models.PODCLIQUES
        gateless: dict[str, tuple[Any, str]] = {
            "strategic merge": ({"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}, STRATEGIC_PATCH),
            "JSON patch": ([{"op": "remove", "path": "/spec/schedulingGates/0"}], JSON_PATCH),
        }
        for method, (patch, content_type) in gateless.items():
            await self.measure("create pod", lambda i: client.create(PODS, pod(i)))
            await self.measure(
                f"take the gate off: {method}",
                lambda i, p=patch, c=content_type: client.patch(PODS, "default", f"p{i}", p, content_type=c),
            )
            await self.measure(
                "delete pod", lambda i: client.request("DELETE", PODS.path("default", f"p{i}"), body=DELETE_AT_ONCE)
            )
        await self.measure("create PodClique", lambda i: client.create(cliques, clique(i)))
        await self.measure(
            "PodClique status: merge patch",
            lambda i: client.patch(cliques, "default", f"q{i}", {"status": status(0)}, subresource="status"),
        )
        patched = await self.measure(
            "PodClique status: JSON patch",
            lambda i: client.patch(
                cliques,
                "default",
                f"q{i}",
                [{"op": "add", "path": "/status", "value": status(1)}],
                content_type=JSON_PATCH,
                subresource="status",
            ),
        )
        await self.measure(
            "PodClique status: update",
            lambda i: client.replace(cliques, {**patched[i], "status": status(2)}, subresource="status"),
        )
        apply = {"apiVersion": cliques.api_version, "kind": "PodClique", "status": status(1)}
        await self.measure(
            "PodClique status: server-side apply",
            lambda i: client.request(
                "PATCH",
                cliques.path("default", f"q{i}", "status"),
                params={"fieldManager": "bench", "force": "true"},
                body={**apply, "metadata": {"name": f"q{i}"}},
                content_type=APPLY_PATCH,
            ),
        )

    async def reads(self, cluster: Cluster) -> None:
        """List the same pods with both clients, which differ only in the decoding."""
        await self.measure("create pod", lambda i: self._client.create(PODS, pod(i)))
        decode = msgspec.json.Decoder(_List).decode
        cpu = time.process_time()
        count = len(decode(await self._client.request("GET", PODS.path("default"))).items)
        seconds_here = time.process_time() - cpu
        api = official.CoreV1Api(config.new_client_from_config(str(cluster.kubeconfig)))
        cpu = time.process_time()
        listed_count = len(api.list_namespaced_pod("default").items)
        seconds = time.process_time() - cpu
        assert count == listed_count == REQUEST_COUNT
        print(f"list {count} pods: {seconds_here * 1000:.0f} ms of our CPU; official client {seconds * 1000:.0f} ms")


class _List(msgspec.Struct):
    items: list[Pod]


DELETE_AT_ONCE = {"gracePeriodSeconds": 0}


async def _served(client: Client) -> None:
    for attempt in range(100):
        try:
            await client.list(models.PODCLIQUES, "default")
        except ApiError:
            await asyncio.sleep(0.1 + attempt / 1000)
        else:
            return


async def _all(cluster: Cluster) -> None:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="bench") as client:
        for path in sorted(crds.FOLDER.glob("*.yaml")):
            await client.create(CRDS, yaml.safe_load(path.read_text()))
        await _served(client)
        bench = Environment(cluster, client)
        await bench.writes()
        await bench.reads(cluster)


def main() -> None:
    cluster = Cluster.up("bench", settings=ClusterSettings(scheduler=False), owner=True)
    try:
        asyncio.run(_all(cluster))
    finally:
        cluster.down()


if __name__ == "__main__":
    main()
