"""The gang scheduler is killed after each of its writes of a preemption in turn, and started again: in the end the
gang of higher priority is placed whole, and the other one waits whole.

It runs in this process, and dies by never hearing the answer to its k-th write (`mortal`); the operator lives on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.history.query import History
from conformance.history.recorder import Recorder
from conformance.history.view import View
from conformance.implementation import descriptor
from conformance.implementation.driver import ClusterFacts, Driver
from kube.client import Client
from kube.resource import NAMESPACES, Resource
from reference_impl.api import models
from reference_impl.control.operator import Operator
from reference_impl.scheduler.scheduler import GangScheduler
from tests.reference.mortal import Mortal, death

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SCHEDULER = "grove-gang-scheduler"
PRIORITIES = {"low": 10, "high": 20}
CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
PODS = 2
"""Of each set, with a GPU each; the only node has as many."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        made = Cluster.up("preempted", settings=ClusterSettings(audit=False), owner=True)
        facts = ClusterFacts(made.kubeconfig, made.directory, made.environment(), made.port)
        Driver(descriptor.load("blank"), facts).install()
        made.learn_new_kinds()
        yield made
        made.down()


def the_set(namespace: str, name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/x:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {"containers": [container], "schedulerName": SCHEDULER, "priorityClassName": name}
    spec = {"roleName": "w", "replicas": PODS, "minAvailable": PODS, "podSpec": pod}
    template = {
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "terminationDelay": "4h0m0s",
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "priorityClassName": name,
        "cliques": [{"name": "w", "spec": spec}],
    }
    return {
        "apiVersion": models.PODCLIQUESETS.api_version,
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "template": template},
    }


def bound(view: View, name: str) -> int:
    """Pods of a set that are on a node and stay there."""
    pods = [pod for pod in view.list("pods") if pod["metadata"]["name"].startswith(f"{name}-")]
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods if not pod["metadata"].get("deletionTimestamp"))


def preempted(view: View) -> bool:
    gang = view.get("podgangs", "low-0") or {}
    conditions = {c["type"]: c["status"] for c in gang.get("status", {}).get("conditions", [])}
    told = conditions.get("DisruptionTarget") == "True" and conditions.get("Scheduled") == "False"
    waiting = [
        p for p in view.list("pods") if p["metadata"]["name"].startswith("low-") and not p["spec"].get("nodeName")
    ]
    return bound(view, "high") == PODS and bound(view, "low") == 0 and len(waiting) == PODS and told


async def until(history: History, what: str, condition: Any) -> None:
    await asyncio.to_thread(history.wait, what, condition, 40)


def started(cluster: Cluster, k: int) -> tuple[asyncio.Task[None], Mortal]:
    client = Mortal.from_kubeconfig(cluster.kubeconfig, user_agent=f"scheduler-{k}")

    async def run() -> None:
        async with client:
            await GangScheduler(client, name=SCHEDULER).run()

    return asyncio.create_task(run()), client


async def play(cluster: Cluster, recorder: Recorder, client: Client, k: int) -> int:
    """One preemption with a death at its `k`-th write; gives the number of writes where nobody died."""
    namespace = f"preempted-{k}"
    history = History(recorder, namespace)
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    task, mortal = started(cluster, k)
    await client.create(models.PODCLIQUESETS, the_set(namespace, "low"))

    def ready(view: View) -> bool:
        gang = view.get("podgangs", "low-0") or {}
        return gang.get("status", {}).get("phase") == "Running"

    await until(history, "the lower one runs", ready)
    mortal.writes, mortal.k = 0, k
    await client.create(models.PODCLIQUESETS, the_set(namespace, "high"))
    done = asyncio.create_task(until(history, f"death at write {k}: the higher one has taken its place", preempted))
    died = asyncio.create_task(mortal.dead.wait())
    await asyncio.wait({done, died}, return_when=asyncio.FIRST_COMPLETED)
    if died.done():
        await death(task)
        task, _ = started(cluster, 0)
    await done
    died.cancel()
    writes = mortal.writes
    mortal.k = 0
    for name in PRIORITIES:
        await client.delete(models.PODCLIQUESETS, namespace, name)
    await until(history, "all is gone", lambda view: not view.list("pods") and not view.list("podgangs"))
    await death(task)
    return writes


async def all_deaths(cluster: Cluster) -> int:
    recorder = Recorder(cluster.kubeconfig, "preempted")
    recorder.start()
    try:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
            for name, value in PRIORITIES.items():
                about = {"apiVersion": CLASSES.api_version, "kind": CLASSES.kind, "metadata": {"name": name}}
                await client.create(CLASSES, {**about, "value": value})
            fleet = nodes.manifests("tiny", 1)
            await nodes.create_nodes(client, fleet)
            await nodes.wait_until_schedulable(client, [node["metadata"]["name"] for node in fleet])
            operator = Operator(client, scheduler_name=SCHEDULER, init_image="registry.example/wait:1")
            running = asyncio.create_task(operator.run())
            writes = await play(cluster, recorder, client, 0)
            for k in range(1, writes + 1):
                await play(cluster, recorder, client, k)
            await death(running)
            return writes
    finally:
        recorder.stop()


def test_a_death_after_any_write_of_a_preemption_changes_nothing_in_the_end(cluster: Cluster) -> None:
    assert asyncio.run(all_deaths(cluster)) > 2 * PODS
