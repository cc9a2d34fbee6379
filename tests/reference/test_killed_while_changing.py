"""The operator is killed after each of the writes that a change costs it, and started again: a scale-out, a scale-in
and a termination end as they always do. As in test_killed_anywhere.py; here one set lives through all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.grove import health, pods, workloads
from conformance.grove.fields import condition_is, name
from conformance.history import lives, sights
from conformance.history.query import History
from conformance.history.recorder import Recorder
from conformance.history.view import View
from kube.client import Client
from kube.resource import NAMESPACES, PODS
from reference_impl.api import models
from reference_impl.scheduler.scheduler import GangScheduler
from tests.reference.test_killed_anywhere import KINDS, SCHEDULER, cluster, death, life, normal

__all__ = ["cluster"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

NAMESPACE = "changes"
CRASHED = {"containers": {"started": False, "lastExit": 1}}
Act = Callable[[], Awaitable[None]]
Done = Callable[[View], bool]


def the_set() -> dict[str, Any]:
    small = {"alone": 1, "aloneFloor": 1, "groups": 1, "groupsFloor": 1, "members": 1, "membersFloor": 1}
    manifest = dict(workloads.load("kept", {"setName": "s", "delay": "1s", **small}))
    manifest["metadata"] = {**manifest["metadata"], "namespace": NAMESPACE}
    manifest["spec"]["template"] |= {
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
    }
    return manifest


class Stage:
    """One set, and an operator that is there only while something is to be done."""

    def __init__(self, cluster: Cluster, history: History, client: Client) -> None:
        self._cluster, self._history, self._client = cluster, history, client
        self._right: dict[str, dict[str, Any]] = {}

    async def change(self, what: str, act: Act, done: Done, k: int) -> int:
        """Lets an operator that dies at its `k`-th write (0: never) and its successor do what an act asks for; gives
        how often the first one wrote."""
        await act()
        task, mortal = await life(self._cluster.kubeconfig, k, NAMESPACE, create=False)
        ended = asyncio.create_task(self._ended(what, done))
        died = asyncio.create_task(mortal.dead.wait())
        await asyncio.wait({ended, died, task}, return_when=asyncio.FIRST_COMPLETED)
        if died.done():
            await death(task)
            task, _ = await life(self._cluster.kubeconfig, 0, NAMESPACE, create=False)
        found = await ended
        died.cancel()
        await death(task)
        assert found == self._right.setdefault(what, found), f"{what}: death at write {k}"
        return mortal.writes

    async def _ended(self, what: str, done: Done) -> dict[str, Any]:
        right = self._right.get(what)
        if right is None:
            await asyncio.to_thread(self._history.wait, what, done, 60)
            await asyncio.to_thread(self._history.quiet, 2, 30, resources=KINDS)
        else:
            with suppress(Exception):
                wanted = lambda view: done(view) and normal(view) == right  # noqa: E731
                await asyncio.to_thread(self._history.wait, what, wanted, 30)
        return normal(self._history.view())

    # -- what is asked for ---------------------------------------------------------------------------------------

    async def create(self) -> None:
        await self._client.create(models.PODCLIQUESETS, the_set())

    def scale(self, replicas: int) -> Act:
        async def act() -> None:
            body = {"spec": {"replicas": replicas}}
            await self._client.patch(models.PODCLIQUES, NAMESPACE, "s-0-a", body, subresource="scale")
            await self._client.patch(models.SCALING_GROUPS, NAMESPACE, "s-0-g", body, subresource="scale")

        return act

    async def crash(self) -> None:
        [pod] = sights.pods_of(self._history.view(), "s-0-a")
        held = {"metadata": {"annotations": {health.HOLD_STATUS: "yes"}}}
        await self._client.patch(PODS, NAMESPACE, name(pod), held)
        await self._client.patch(PODS, NAMESPACE, name(pod), health.status(pod, CRASHED), subresource="status")

    def anew(self) -> Done:
        before = lives.uids(self._history.view(), "podcliques")
        made = lives.renewed("podcliques", before, before)
        return lambda view: bool(made(view)) and settled(1)(view)

    def cliques_made(self) -> int:
        return max(lives.lives(self._history, "podcliques").values())


def settled(replicas: int) -> Done:
    """The set is available, its group and its clique have so many replicas, and nothing is being made anew."""

    def seen(view: View) -> bool:
        found, group = view.get("podcliquesets", "s") or {}, view.get("podcliquescalinggroups", "s-0-g") or {}
        ready = sum(map(pods.ready, view.list("pods"))) == len(view.list("pods")) == 3 * replicas
        flagged = condition_is(group, "GangTerminationInProgress") == "True"
        available = group.get("status", {}).get("availableReplicas") == replicas
        return ready and available and not flagged and found.get("status", {}).get("availableReplicas") == 1

    return seen


async def all_deaths(cluster: Cluster) -> dict[str, int]:
    recorder = Recorder(cluster.kubeconfig, "killed-while-changing")
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
            await stage.change("it is made", stage.create, settled(1), 0)
            writes: dict[str, int] = {"out": 1, "in": 1, "termination": 1}
            k = 0
            while k <= max(writes["out"], writes["in"]):
                written = await stage.change("it is scaled out", stage.scale(2), settled(2), k)
                writes["out"] = writes["out"] if k else written
                written = await stage.change("it is scaled in", stage.scale(1), settled(1), k)
                writes["in"] = writes["in"] if k else written
                k += 1
            k = 0
            while k <= writes["termination"]:
                before = stage.cliques_made()
                written = await stage.change("it is terminated", stage.crash, stage.anew(), k)
                writes["termination"] = writes["termination"] if k else written
                # In the worst case once more than without the death (CHG-GT-27).
                assert stage.cliques_made() - before <= 2, f"terminations after a death at write {k}"
                k += 1
            await death(scheduler)
            return writes
    finally:
        recorder.stop()


def test_a_death_during_a_change_changes_nothing_in_the_end(cluster: Cluster) -> None:
    writes = asyncio.run(all_deaths(cluster))
    assert writes["out"] >= 10 and writes["in"] >= 6 and writes["termination"] >= 15, writes
