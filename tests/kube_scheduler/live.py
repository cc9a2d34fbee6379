"""Ask the real kube-scheduler which nodes pass its filters.

Its control plane consists of etcd and the API server alone: controllers would bind volumes and remove taints.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from conformance.cluster.assets import resolve_all
from conformance.cluster.components import last_words
from conformance.cluster.controlplane import Cluster
from conformance.cluster.features import Requested
from conformance.cluster.settings import ClusterSettings
from kube.client import Client
from kube.resource import NAMESPACES, NODES, PODS, Resource
from tests.kube_scheduler.extender import Extender
from tests.kube_scheduler.nodes import NAMESPACES as NAMES
from tests.kube_scheduler.nodes import Manifest
from tests.kube_scheduler.pods import OVERHEAD, RUNTIME_CLASS
from tests.kube_scheduler.probe import Probe
from tests.kube_scheduler.scenes import PLURALS, Scene
from tests.kube_scheduler.stored import difference, stored
from tests.kube_scheduler.watched import Pod, WatchedPods

GATES = "TaintTolerationComparisonOperators=true"
"""Lets tolerations compare numbers, which is off by default in 1.36."""
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False)
STORAGE = "storage.k8s.io"
RESOURCES = {
    "namespaces": NAMESPACES,
    "nodes": NODES,
    "storageclasses": Resource(STORAGE, "v1", "storageclasses", "StorageClass", False),
    "csinodes": Resource(STORAGE, "v1", "csinodes", "CSINode", False),
    "csidrivers": Resource(STORAGE, "v1", "csidrivers", "CSIDriver", False),
    "csistoragecapacities": Resource(STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    "persistentvolumes": Resource("", "v1", "persistentvolumes", "PersistentVolume", False),
    "persistentvolumeclaims": Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    "pods": PODS,
}
LIMIT = 120.0
"""Seconds that the scheduler has for the pods of a scene."""
AT_ONCE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


@dataclass(frozen=True)
class Answer:
    """Names of the nodes that passed all filters, and what kube-scheduler says of the pod."""

    nodes: Sequence[str]
    message: str = ""


def configuration(kubeconfig: Path, extender: str) -> dict[str, Any]:
    """Return the configuration of a scheduler that filters all nodes with all plugins, and never preempts."""
    limits = {"qps": 5000, "burst": 10000}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), **limits},
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}],
        "extenders": [{"urlPrefix": extender, "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "30s"}],
    }


class Scheduler:
    """kube-scheduler on its control plane, which has the objects of one scene at a time."""

    def __init__(self, client: Client, extender: Extender, watched: WatchedPods, version: str, log: Path) -> None:
        self._client, self._extender, self._watched, self._log = client, extender, watched, log
        self.version = version
        """The version of Kubernetes."""
        self._numbers = itertools.count()

    async def prepare(self) -> None:
        """Create what all scenes share."""
        for name in (*NAMES, Probe.NAMESPACE):
            await self._client.create(NAMESPACES, {"metadata": {"name": name}})
            await self._client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": name}})
        runtime = {"metadata": {"name": RUNTIME_CLASS}, "handler": "any", "overhead": {"podFixed": OVERHEAD}}
        await self._client.create(RUNTIME_CLASSES, runtime)

    async def play(self, scene: Scene) -> list[Answer]:
        """Return the answer for each candidate of a scene."""
        try:
            return await self._play(scene)
        finally:
            await self._clear()

    async def _play(self, scene: Scene) -> list[Answer]:
        probe = Probe(next(self._numbers))
        # The objects of the probe come last of each kind: the scheduler that has them has all.
        for plural in PLURALS:
            await asyncio.gather(*(self._create(plural, manifest) for manifest in scene.objects[plural]))
            for manifest in probe.objects(plural):
                await self._create(plural, manifest)
        for number in itertools.count():
            [pod] = await self._decide([probe.pod(number)])
            if self._nodes(pod) == probe.EXPECTED:
                break
            await self._client.delete(PODS, Probe.NAMESPACE, pod.metadata.name)
        self._extender.forget()
        pods = await self._decide(scene.candidates)
        if self._extender.contradictions:
            raise AssertionError(f"seed {scene.seed}: answers differ: {self._extender.contradictions}")
        names = set(scene.nodes)
        return [Answer([n for n in self._nodes(pod) if n in names], _message(pod)) for pod in pods]

    def _nodes(self, pod: Pod) -> list[str]:
        return self._extender.feasible.get(pod.metadata.uid, [])

    async def _decide(self, manifests: Sequence[Manifest]) -> list[Pod]:
        """Create pods and wait until the scheduler has found no node for any of them."""
        await asyncio.gather(*(self._create("pods", manifest) for manifest in manifests))

        try:
            pods = await asyncio.wait_for(self._watched.decided(manifests), LIMIT)
        except TimeoutError as error:
            raise AssertionError(f"kube-scheduler has not tried all pods: {last_words(self._log)}") from error
        for pod in pods:
            if pod.scheduled is None or pod.scheduled.status != "False" or pod.status.nominated_node_name:
                raise AssertionError(f"{pod.metadata.name} was placed or nominated: {pod.status}")
        return pods

    async def _create(self, plural: str, manifest: Manifest) -> None:
        """Create an object with its status, and delete it if it is to be terminating."""
        resource, metadata = RESOURCES[plural], manifest["metadata"]
        place = (metadata.get("namespace"), metadata["name"])
        if plural == "namespaces" and metadata["name"] != Probe.NAMESPACE:
            labels = {"metadata": {"labels": {"team": None, "stage": None, **metadata["labels"]}}}
            await self._client.patch(resource, *place, labels)
            return
        if plural == "namespaces":
            await self._client.patch(resource, *place, {"metadata": metadata})
            return
        sent = {**manifest, "metadata": {k: v for k, v in metadata.items() if k != "deletionTimestamp"}}
        status = manifest.get("status")
        if plural != "nodes":
            sent.pop("status", None)
        observed = orjson.loads(await self._client.create(resource, sent))
        if plural == "nodes":  # at admission, new nodes get a taint that the node lifecycle controller would remove
            taints = {"spec": {"taints": manifest["spec"].get("taints")}}
            observed = orjson.loads(await self._client.patch(resource, *place, taints))
        elif status:
            answer = await self._client.patch(resource, *place, {"status": status}, subresource="status")
            observed = orjson.loads(answer)
        if "deletionTimestamp" in metadata:
            await self._client.delete(resource, *place)
        expected = {**(stored(sent) if plural == "pods" else sent), **({"status": status} if status else {})}
        if wrong := difference(expected, observed):
            raise AssertionError(f"{plural} {metadata['name']} is stored otherwise: {wrong}")

    async def _clear(self) -> None:
        """Remove all objects but the namespaces."""
        for plural in reversed(PLURALS[1:]):
            resource = RESOURCES[plural]
            for namespace in (*NAMES, Probe.NAMESPACE) if resource.namespaced else (None,):
                await self._client.request("DELETE", resource.path(namespace), body=AT_ONCE)
            if plural.startswith("persistentvolume"):
                for item in await self._client.list(resource):
                    place = (item["metadata"].get("namespace"), item["metadata"]["name"])
                    await self._client.patch(resource, *place, {"metadata": {"finalizers": None}})


def _message(pod: Pod) -> str:
    return pod.scheduled.message if pod.scheduled else ""


@asynccontextmanager
async def scheduler(kubernetes: str = "") -> AsyncIterator[Scheduler]:
    """Start a control plane with kube-scheduler; both end with the block."""
    settings = ClusterSettings(scheduler=False, audit=False, kubernetes=kubernetes, features=Requested(gates=(GATES,)))
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
            playing = Scheduler(client, extender, watched, cluster.versions["kubernetes"], log)
            await playing.prepare()
            yield playing
    finally:
        await asyncio.to_thread(cluster.down)


@asynccontextmanager
async def _process(cluster: Cluster, kubernetes: str, extender: str, log: Path) -> AsyncIterator[None]:
    file = cluster.directory / "filters.yaml"
    file.write_text(yaml.safe_dump(configuration(cluster.kubeconfig, extender)))
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
