"""The operator is killed after each of its writes in turn, and started again: what comes of a set is always the same.

It runs in this process, and dies by never hearing the answer to its k-th write: that write has happened, the operator
doesn't know, what was under way beside it is cut off, and nothing that it knew survives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.grove import workloads
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED
from conformance.history.recorder import Recorder
from conformance.history.view import View
from conformance.implementation import descriptor
from conformance.implementation.driver import ClusterFacts, Driver
from kube.client import Client
from kube.resource import NAMESPACES
from reference_impl.api import models
from reference_impl.control.operator import Operator
from reference_impl.scheduler.scheduler import GangScheduler
from tests.reference.mortal import Mortal, death

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SCHEDULER = "grove-gang-scheduler"
KINDS = ("podcliquesets", "podcliques", "podcliquescalinggroups", "podgangs", "services", "pods")
PODS = 2 + 2 * 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        made = Cluster.up("killed", settings=ClusterSettings(audit=False), owner=True)
        facts = ClusterFacts(made.kubeconfig, made.directory, made.environment(), made.port)
        # The CRDs without the webhooks: the operator's process is this one and serves none.
        crds = Driver(descriptor.load("blank"), facts)
        crds.install()
        made.learn_new_kinds()
        yield made
        made.down()


def the_set(namespace: str) -> dict[str, Any]:
    """A standalone clique and a scaling group with a base and a scaled replica, each clique after the one before it;
    with all defaults said."""
    small = {"routers": 2, "workers": 2, "workersFloor": 1, "prefills": 1, "prefillsFloor": 1, "decodes": 1}
    manifest = dict(workloads.load("disaggregated", {"setName": "s", **small, "prefillGpus": 1, "decodeGpus": 1}))
    manifest["metadata"] = {**manifest["metadata"], "namespace": namespace}
    template = manifest["spec"]["template"]
    template |= {"terminationDelay": "4h0m0s", "headlessServiceConfig": {"publishNotReadyAddresses": True}}
    template["cliqueStartupType"] = "CliqueStartupTypeExplicit"
    for clique, parent in zip(template["cliques"][1:], template["cliques"], strict=False):
        clique["spec"]["startsAfter"] = [parent["name"]]
    return manifest


def normal(view: View) -> dict[str, Any]:
    """What must be the same in every run: everything but names, times, uids and versions that are given by chance."""
    pods = {pod["metadata"]["name"]: pod["spec"].get("hostname", "?") for pod in view.list("pods")}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if k not in CHANCE}
        if isinstance(value, list):
            return [plain(v) for v in value]
        return pods.get(value, value) if isinstance(value, str) else value

    found: dict[str, Any] = {}
    for kind in KINDS:
        for item in view.list(kind):
            document = plain({k: item.get(k) for k in ("metadata", "spec", "status")})
            name = item["metadata"]["name"]
            for group in (document["spec"] or {}).get("podgroups") or ():
                group["podReferences"] = sorted(group["podReferences"], key=lambda r: str(r["name"]))
            found[f"{kind}/{pods.get(name, name)}"] = document
    return found


CHANCE = frozenset(
    {
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "lastTransitionTime",
        "generation",
        "observedGeneration",
        "namespace",
        "nodeName",
        "volumes",
        "volumeMounts",
        "startTime",
        "startedAt",
        "finishedAt",
        "podIP",
        "podIPs",
        "hostIP",
        "hostIPs",
        "clusterIP",
        "clusterIPs",
        "value",
    }
)
"""Fields whose values differ from run to run; `value` is that of environment variables, which name the namespace."""


async def until(history: History, wanted: dict[str, Any] | None) -> dict[str, Any]:
    """Waits for the final state, or, where none is known yet, for a settled one, and gives it."""

    def ready(view: View) -> bool:
        found = view.get("podcliquesets", "s") or {}
        available = found.get("status", {}).get("availableReplicas") == 1
        return available and sum(_ready(pod) for pod in view.list("pods")) == PODS

    await asyncio.to_thread(history.wait, "the set is available", ready, 60)
    if wanted is None:
        await asyncio.to_thread(history.quiet, 2, 30, resources=KINDS)
        return normal(history.view())
    with suppress(Exception):
        await asyncio.to_thread(history.wait, "it is as ever", lambda view: normal(view) == wanted, 20)
    return normal(history.view())


def _ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def life(kubeconfig: Path, k: int, namespace: str, create: bool) -> tuple[asyncio.Task[None], Mortal]:
    """Starts an operator, and with `create` makes the set before."""
    client = Mortal.from_kubeconfig(kubeconfig, user_agent=f"operator-{k}")
    client.k = k

    async def run() -> None:
        async with client:
            if create:
                async with Client.from_kubeconfig(kubeconfig, user_agent="test") as other:
                    await other.create(models.PODCLIQUESETS, the_set(namespace))
            await Operator(client, scheduler_name=SCHEDULER, init_image="registry.example/wait:1").run()

    return asyncio.create_task(run()), client


async def play(
    cluster: Cluster, recorder: Recorder, k: int, wanted: dict[str, Any] | None
) -> tuple[dict[str, Any], int]:
    """One run with a death at the `k`-th write: the final state, and how often the first operator wrote."""
    namespace = f"death-{k}"
    history = History(recorder, namespace)
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        task, mortal = await life(cluster.kubeconfig, k, namespace, create=True)
        if k:
            done = asyncio.create_task(until(history, wanted))
            died = asyncio.create_task(mortal.dead.wait())
            await asyncio.wait({done, died, task}, return_when=asyncio.FIRST_COMPLETED)
            if died.done():
                await death(task)
                task, _ = await life(cluster.kubeconfig, 0, namespace, create=False)
            found = await done
            died.cancel()
        else:
            found = await until(history, wanted)
        mortal.k, writes = 0, mortal.writes  # it may live through the deletion, which is not what is tried here
        made = [r for r in history.records("pods") if r.kind == ADDED]
        gone = [
            r for r in history.records("pods") if r.kind == DELETED or r.object["metadata"].get("deletionTimestamp")
        ]
        assert (len(made), len(gone)) == (PODS, 0), f"death at write {k}: pods made and deleted"
        await client.delete(models.PODCLIQUESETS, namespace, "s")
        empty = lambda view: not any(view.list(kind) for kind in KINDS)  # noqa: E731
        await asyncio.to_thread(history.wait, f"death at write {k}: nothing is left after deletion", empty, 60)
        await death(task)
    return found, writes


async def all_deaths(cluster: Cluster) -> int:
    recorder = Recorder(cluster.kubeconfig, "killed-anywhere")
    recorder.start()
    try:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
            wanted = nodes.manifests("dgx-h100", 2)
            await nodes.create_nodes(client, wanted)
            await nodes.wait_until_schedulable(client, [node["metadata"]["name"] for node in wanted])
            scheduler = asyncio.create_task(GangScheduler(client, name=SCHEDULER).run())
            right, writes = await play(cluster, recorder, 0, None)
            k = 1
            while k <= writes:
                found, _ = await play(cluster, recorder, k, right)
                assert found == right, f"death at write {k}"
                k += 1
            await death(scheduler)
            return k - 1
    finally:
        recorder.stop()


def test_a_death_after_any_write_changes_nothing_in_the_end(cluster: Cluster) -> None:
    assert asyncio.run(all_deaths(cluster)) > 30
