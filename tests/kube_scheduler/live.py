"""Queries to the real kube-scheduler about the nodes that pass its filters.

Its control plane consists only of etcd and the API server, because controllers would bind volumes and remove taints.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from string import Template

import orjson

from conformance.cluster.assets import resolve_all
from conformance.cluster.components import log_tail
from conformance.cluster.controlplane import Cluster
from conformance.cluster.features import FeatureRequest
from conformance.cluster.settings import ClusterSettings
from kube.client import Client
from kube.resource import NAMESPACES, PODS, Resource
from tests.kube_scheduler import nodes
from tests.kube_scheduler.draw import Manifest
from tests.kube_scheduler.extender import Extender
from tests.kube_scheduler.pods import OVERHEAD, RUNTIME_CLASS
from tests.kube_scheduler.probe import EXPECTED, NAMESPACE, probe
from tests.kube_scheduler.scenes import RESOURCES, Scene
from tests.kube_scheduler.stored import difference, stored
from tests.kube_scheduler.watched import Pod, WatchedPods

CONFIGURATION = Template(Path(__file__).with_name("configuration.yaml").read_text(encoding="utf-8"))
GATES = "TaintTolerationComparisonOperators=true"
"""The feature gate that lets tolerations compare numbers. It is off by default in Kubernetes 1.36."""
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False)
ALL_NAMESPACES = (*nodes.NAMESPACES, NAMESPACE)
LIMIT_SECONDS = 120.0
"""The time, in seconds, within which the scheduler must have tried a scene's pods."""
DELETE_OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


Answer = tuple[list[str], str]
"""The names of the nodes that passed all filters, and kube-scheduler's message about the pod."""


class Scheduler:
    """kube-scheduler with its control plane, which holds the objects of one scene at a time."""

    def __init__(self, client: Client, extender: Extender, watched: WatchedPods, version: str, log: Path) -> None:
        self._client, self._extender, self._watched, self._log = client, extender, watched, log
        self.version = version
        """The version of Kubernetes."""
        self._numbers = itertools.count()

    async def prepare(self) -> None:
        """Create the objects that all scenes share."""
        for name in ALL_NAMESPACES:
            await self._client.create(NAMESPACES, {"metadata": {"name": name}})
            await self._client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": name}})
        runtime = {"metadata": {"name": RUNTIME_CLASS}, "handler": "any", "overhead": {"podFixed": OVERHEAD}}
        await self._client.create(RUNTIME_CLASSES, runtime)

    async def play(self, scene: Scene) -> list[Answer]:
        """Create a scene's objects and candidates, and return the scheduler's response for each candidate."""
        try:
            await self._set_up(scene.objects)
            pods = await self._decide(scene.candidates)
            if self._extender.contradictions:
                raise AssertionError(f"seed {scene.seed}: answers differ: {self._extender.contradictions}")
            return [([name for name in self._nodes(pod) if name in scene.nodes], pod.scheduled.message) for pod in pods]
        finally:
            await self._clear()

    async def _set_up(self, objects: Mapping[str, Sequence[Manifest]]) -> None:
        """Create objects, and wait until the scheduler has seen all of them."""
        attempt_label = next(self._numbers)
        last_objects = probe(attempt_label)
        for plural in RESOURCES:
            await asyncio.gather(*(self._create(plural, manifest) for manifest in objects[plural]))
            for manifest in last_objects[plural]:
                await self._create(plural, manifest)
        for attempt in itertools.count():
            [pod] = await self._decide([probe(attempt_label, attempt)["pod"]])
            if self._nodes(pod) == EXPECTED:
                break
            await self._client.delete(PODS, NAMESPACE, pod.metadata.name)
        self._extender.forget()

    def _nodes(self, pod: Pod) -> list[str]:
        return self._extender.feasible.get(pod.metadata.uid, [])

    async def _decide(self, manifests: Sequence[Manifest]) -> list[Pod]:
        """Create pods, and wait until the scheduler has tried to schedule them."""
        await asyncio.gather(*(self._create("pods", manifest) for manifest in manifests))
        try:
            pods = await asyncio.wait_for(self._watched.decided(manifests), LIMIT_SECONDS)
        except TimeoutError as error:
            raise AssertionError(f"kube-scheduler has not tried all pods: {log_tail(self._log)}") from error
        for pod in pods:
            if pod.scheduled.reason != "Unschedulable" or pod.status.nominated_node_name:
                raise AssertionError(f"{pod.metadata.name} was not refused by filters: {pod.status}")
        return pods

    async def _create(self, plural: str, manifest: Manifest) -> None:
        """Create an object with its status, and delete it if it is supposed to be terminating."""
        resource, metadata, status = RESOURCES[plural], manifest["metadata"], manifest.get("status")
        key = (metadata.get("namespace"), metadata["name"])
        body = {**manifest, "metadata": {k: v for k, v in metadata.items() if k != "deletionTimestamp"}}
        if resource == NAMESPACES:
            body["metadata"] = {**metadata, "labels": {"team": None, "stage": None, **metadata["labels"]}}
            answer = await self._client.patch(resource, *key, body)
        elif plural == "nodes":  # admission taints new nodes, and only the node lifecycle controller would untaint them
            await self._client.create(resource, body)
            taints = {"spec": {"taints": manifest["spec"].get("taints")}}
            answer = await self._client.patch(resource, *key, taints)
        else:
            answer = await self._client.create(resource, {k: v for k, v in body.items() if k != "status"})
            if status:
                answer = await self._client.patch(resource, *key, {"status": status}, subresource="status")
        if "deletionTimestamp" in metadata:
            await self._client.delete(resource, *key)
        if stored_difference := difference(stored(plural, body), orjson.loads(answer)):
            raise AssertionError(f"{plural} {metadata['name']} is stored otherwise: {stored_difference}")

    async def _clear(self) -> None:
        """Remove all objects except the namespaces."""
        for plural, resource in reversed(RESOURCES.items()):
            for namespace in ALL_NAMESPACES if resource.namespaced else (None,) if resource != NAMESPACES else ():
                await self._client.request("DELETE", resource.path(namespace), body=DELETE_OPTIONS)
            if plural.startswith("persistentvolume"):
                for item in await self._client.list(resource):
                    key = (item["metadata"].get("namespace"), item["metadata"]["name"])
                    await self._client.patch(resource, *key, {"metadata": {"finalizers": None}})


@asynccontextmanager
async def scheduler(kubernetes: str = "") -> AsyncIterator[Scheduler]:
    """Start a control plane with kube-scheduler. Both stop when the block ends."""
    settings = ClusterSettings(
        scheduler=False, audit=False, kubernetes=kubernetes, features=FeatureRequest(gates=(GATES,))
    )
    cluster = await asyncio.to_thread(Cluster.up, f"filters-{os.getpid()}", settings=settings)
    try:
        for component in set(cluster.monitor.pids()) - {"etcd", "kube-apiserver"}:
            cluster.kill(component)
        extender, log = Extender(), cluster.directory / "kube-scheduler.log"
        async with (
            Client.from_kubeconfig(cluster.kubeconfig, user_agent="filters", in_flight=16) as client,
            WatchedPods(client).follow() as watched,
            extender.serve() as url,
            _process(cluster, kubernetes, url, log),
        ):
            running_scheduler = Scheduler(client, extender, watched, cluster.versions["kubernetes"], log)
            await running_scheduler.prepare()
            yield running_scheduler
    finally:
        await asyncio.to_thread(cluster.down)


@asynccontextmanager
async def _process(cluster: Cluster, kubernetes: str, extender: str, log: Path) -> AsyncIterator[None]:
    file = cluster.directory / "filters.yaml"
    file.write_text(CONFIGURATION.substitute(kubeconfig=cluster.kubeconfig, extender=extender))
    program = resolve_all(kubernetes=kubernetes).kube_scheduler
    command = [str(program), f"--config={file}", "--secure-port=0", f"--feature-gates={GATES}"]
    with log.open("w") as output:
        environment = os.environ | cluster.marker()
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()
