"""Tests of PodGangMap gangs on kube-scheduler: extra pods, minimums, and an update of all components."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from reference_impl.control.features import Features
from reference_impl.control.operator import Operator
from reference_impl.plan import labels
from reference_impl.plan.workload_api.mode import SCHEDULER, Mode
from tests.reference.coherent.small_api import SmallClient
from tests.reference.coherent.world import World, the_set

FPD = {"F": (5, 2), "P": (4, 1), "D": (3, 1)}
KINDS = ("workloads", "compositepodgroups", "podgroups")


class KubeSchedulerWorld(World):
    async def start(self) -> None:
        features = Features(maps=True, workload_api=Mode())
        operator = Operator(SmallClient(self.api), scheduler_name=SCHEDULER, features=features)
        self._tasks["operator"] = asyncio.create_task(operator.run())
        await operator.ready.wait()
        self._operator = operator

    def gated(self, cliques: Iterable[str]) -> bool:
        """Return whether any pod of these cliques has gates."""
        return any(pod["spec"].get("schedulingGates") for clique in cliques for pod in self.pods(clique))

    def leaf(self, gang: str, clique: str) -> dict[str, Any]:
        [podgroup] = [
            item
            for item in self.api.all("podgroups")
            if (item["metadata"]["labels"][labels.PODGANG], item["metadata"]["labels"][labels.PODCLIQUE])
            == (gang, clique)
        ]
        return podgroup

    def misplaced(self) -> list[str]:
        """Return the pods whose PodGroup is not the PodGroup of their gang and clique."""
        groups = {item["metadata"]["name"]: item["metadata"]["labels"] for item in self.api.all("podgroups")}
        pod_names = []
        for pod in self.pods():
            tags, name = pod["metadata"]["labels"], pod["spec"].get("schedulingGroup", {}).get("podGroupName")
            group_labels = groups.get(name, {})
            if any(group_labels.get(label) != tags[label] for label in (labels.PODGANG, labels.PODCLIQUE)):
                pod_names.append(pod["metadata"]["name"])
        return pod_names


@asynccontextmanager
async def world(*, held_back: bool = False) -> AsyncIterator[KubeSchedulerWorld]:
    w = KubeSchedulerWorld()
    w.api.held_back = held_back
    w._tasks["pods"] = asyncio.create_task(w.api.run_pods())
    await w.start()
    try:
        await w.create(the_set(**FPD))
        yield w
    finally:
        for name in list(w._tasks):
            await w.stop(name)


async def test_a_gang_of_a_map_waits_and_keeps_its_minimum():
    async with world(held_back=True) as w:
        least = {"s-0-f": 2, "s-0-p-0-pw": 1, "s-0-d-0-dw": 1}
        await w.until(lambda: least in w.pods_by_gang().values() and not w.gated(least), "the minimum")
        [anchor] = [name for name, pods in w.pods_by_gang().items() if pods == least]
        w.api.held_back = False
        await w.until(lambda: w.serving(12), "all pods")
        assert w.pods_by_gang()[anchor]["s-0-f"] == 5 and w.misplaced() == []
        groups = (w.api.get("podgangs", anchor) or {})["spec"]["podgroups"]
        assert {group["name"]: group["minReplicas"] for group in groups}["s-0-f"] == 2
        assert w.leaf(anchor, "s-0-f")["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
        assert [item for kind, verb, item in w.api.history if kind in KINDS and verb == "DELETED"] == []


async def test_after_an_update_of_all_components_every_pod_is_in_its_group():
    async with world() as w:
        await w.until(lambda: w.serving(12), "made")
        await w.change(the_set("v1", **FPD))
        await w.until(w.ended, "updated")
        assert w.images() == {"x:v1"} and w.mixed() == [] and w.misplaced() == []
        gangs = {gang["metadata"]["uid"] for gang in w.api.all("podgangs")}
        owners = {i["metadata"]["ownerReferences"][0]["uid"] for kind in KINDS for i in w.api.all(kind)}
        assert owners == gangs
