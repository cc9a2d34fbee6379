"""The operator is killed after each of the writes that an update costs it, and started again: the update ends as ever,
no pod is replaced twice, and never more than one at a time is missing. As in test_killed_anywhere.py; one set lives
through all of it, and each death has a template of its own.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.grove import updates, workloads
from conformance.grove.fields import label, labels, number, text
from conformance.history import sights
from conformance.history.query import History
from conformance.history.recorder import Recorder
from conformance.history.view import View
from conformance.tests.update import replay
from kube.client import Client
from kube.resource import NAMESPACES
from reference_impl.api import models
from reference_impl.scheduler.scheduler import GangScheduler
from tests.reference.test_killed_anywhere import SCHEDULER, cluster, death, life

__all__ = ["cluster"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

NAMESPACE, HASH = "updates", "grove.io/pod-template-hash"
SIZES = {"s-0-a": 2, "s-0-g-0-b": 1, "s-0-g-0-c": 1}
"""All cliques of the set with their pods. Of these `c` does not change, and goes with its replica of the group."""


def the_set(tag: str) -> dict[str, Any]:
    small = {"alone": 2, "aloneFloor": 1, "groups": 1, "groupsFloor": 1, "members": 1, "membersFloor": 1}
    manifest = dict(workloads.load("kept", {"setName": "s", **small}))
    manifest["metadata"] = {**manifest["metadata"], "namespace": NAMESPACE}
    manifest["spec"]["template"] |= {
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
    }
    for clique in manifest["spec"]["template"]["cliques"]:
        if clique["name"] != "c":
            clique["spec"]["podSpec"]["containers"][0]["image"] = f"registry.example/main:{tag}"
    return manifest


def ended(view: View) -> bool:
    """The set says that it is updated, and so do its parts."""
    found = view.get("podcliquesets", "s")
    generation = updates.generation(found)
    parts = [view.get("podcliques", "s-0-a"), view.get("podcliquescalinggroups", "s-0-g")]
    return (
        updates.ended(found)
        and number(found, "status", "updatedReplicas") == 1
        and number(found, "status", "observedGeneration") == number(found, "metadata", "generation")
        and all(updates.ended(part) and updates.selection(part) is None for part in parts)
        and all(text(part, "status", "currentPodCliqueSetGenerationHash") == generation for part in parts)
        and all(updates.reached(parts[0])[field] == hash for field, hash in updates.targets(parts[0]).items())
    )


def made(view: View) -> bool:
    return number(view.get("podcliquesets", "s"), "status", "availableReplicas") == 1


class Stage:
    """One set, and an operator that is there only while something is to be done."""

    def __init__(self, cluster: Cluster, history: History, client: Client) -> None:
        self._cluster, self._history, self._client = cluster, history, client

    async def make(self) -> None:
        await self._client.create(models.PODCLIQUESETS, the_set("first"))
        await self._played(0, made)

    async def update(self, tag: str, k: int) -> int:
        """Changes the template while no operator is there, and lets one that dies at its `k`-th write (0: never) and
        its successor carry that out; gives how often the first one wrote."""
        since = self._history.mark()
        cliques = the_set(tag)["spec"]["template"]["cliques"]
        body = {"spec": {"template": {"cliques": cliques}}}
        await self._client.patch(models.PODCLIQUESETS, NAMESPACE, "s", body)
        generation = updates.generation(self._history.view().get("podcliquesets", "s"))

        def over(view: View) -> bool:
            return updates.generation(view.get("podcliquesets", "s")) != generation and ended(view)

        writes = await self._played(k, over)
        self._judge(f"death at write {k}", tag, since)
        return writes

    async def _played(self, k: int, over: Any) -> int:
        task, mortal = await life(self._cluster.kubeconfig, k, NAMESPACE, create=False)
        end = asyncio.create_task(asyncio.to_thread(self._history.wait, f"death at write {k}: it ends", over, 60))
        died = asyncio.create_task(mortal.dead.wait())
        await asyncio.wait({end, died, task}, return_when=asyncio.FIRST_COMPLETED)
        if died.done():
            await death(task)
            task, _ = await life(self._cluster.kubeconfig, 0, NAMESPACE, create=False)
        await end
        died.cancel()
        await asyncio.to_thread(self._history.quiet, 0.5, 10)
        await death(task)
        return mortal.writes

    def _judge(self, where: str, tag: str, since: int) -> None:
        view = self._history.view()
        assert replay.made(self._history, since) == SIZES, f"{where}: pods made"
        assert max(replay.lacking(self._history, SIZES, since).values()) == 1, f"{where}: pods that were missing"
        for clique, size in SIZES.items():
            own = sights.pods_of(view, clique)
            of = label(view.get("podcliques", clique) or {}, HASH)
            assert [labels(pod)[HASH] for pod in own] == [of] * size, f"{where}: template hashes of {clique}"
            assert sorted(text(pod, "spec", "hostname") for pod in own) == [f"{clique}-{n}" for n in range(size)], where
            images = {text(pod, "spec", "containers", 0, "image").rpartition(":")[2] for pod in own}
            assert images == {"1" if clique.endswith("c") else tag}, f"{where}: images of {clique}"


async def all_deaths(cluster: Cluster) -> int:
    recorder = Recorder(cluster.kubeconfig, "killed-while-updating")
    recorder.start()
    history = History(recorder, NAMESPACE)
    try:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
            wanted = nodes.manifests("tiny", 1)
            await nodes.create_nodes(client, wanted)
            await nodes.wait_until_schedulable(client, [node["metadata"]["name"] for node in wanted])
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            scheduler = asyncio.create_task(GangScheduler(client, name=SCHEDULER).run())
            stage = Stage(cluster, history, client)
            await stage.make()
            writes = await stage.update("whole", 0)
            for k in range(1, writes + 1):
                await stage.update(f"death-{k}", k)
            await death(scheduler)
            return writes
    finally:
        recorder.stop()


def test_a_death_during_an_update_changes_nothing_in_the_end(cluster: Cluster) -> None:
    writes = asyncio.run(all_deaths(cluster))
    assert writes >= 25, writes
