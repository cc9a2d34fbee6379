"""Tests of the Workload API back-end with the operator on an in-memory API server: order, gates, conditions, life
cycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from reference_impl.control.features import Features
from reference_impl.control.operator import Operator
from reference_impl.plan import labels
from reference_impl.plan.lines import NAMES
from reference_impl.plan.workload_api import planned
from reference_impl.plan.workload_api.mode import SCHEDULER, Extras, Mode, Replacements
from tests.reference.coherent.small_api import SmallApi, SmallClient

LONG_SECONDS, REST_CHECKS = 60.0, 25
"""The time in seconds within which no work may be due at rest, and the number of consecutive checks that must find the
cluster at rest."""
KINDS = ("workloads", "compositepodgroups", "podgroups")
PROPOSED_MODE = Mode(extras=Extras.INSIDE, replacements=Replacements.TOGETHER)


class Cluster:
    def __init__(self, mode: Mode | None = None) -> None:
        self.api, self.mode = SmallApi(), mode or Mode()
        self.operator: Operator | None = None

    @asynccontextmanager
    async def run_operator(self, *, enabled: bool = True) -> AsyncIterator[None]:
        features = Features(topology=True, workload_api=self.mode if enabled else None)
        self.operator = Operator(SmallClient(self.api), scheduler_name=SCHEDULER, features=features, line=NAMES)
        tasks = [asyncio.create_task(self.operator.run()), asyncio.create_task(self.api.run_pods())]
        await self.operator.ready.wait()
        try:
            yield
            await self.wait_until_at_rest()
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError, BaseExceptionGroup):
                    await task

    def at_rest(self, seconds: float) -> bool:
        """Return whether nothing happens now and nothing is due within `seconds`."""
        assert self.operator is not None
        placed = self.api.held_back or self.api.pods_started()
        return self.operator.is_idle(seconds) and self.api.all_seen() and placed

    async def wait_until_at_rest(self) -> None:
        await self.until(lambda: self.at_rest(0.1))

    async def until(self, predicate: Callable[[], Any]) -> None:
        """Wait until the predicate holds. Fail when the cluster has come to rest, because the predicate can no longer
        become true."""
        resting = 0
        while not predicate():
            resting = resting + 1 if self.at_rest(LONG_SECONDS) else 0
            assert resting < REST_CHECKS, self.api.writes[-5:]
            await asyncio.sleep(0.02)

    def pods(self) -> dict[str, list[dict[str, Any]]]:
        by_clique: dict[str, list[dict[str, Any]]] = {}
        for pod in self.api.all("pods"):
            by_clique.setdefault(pod["metadata"]["labels"][labels.PODCLIQUE], []).append(pod)
        return by_clique

    def counts(self) -> dict[str, int]:
        return {clique: len(pods) for clique, pods in self.pods().items()}

    def gates(self) -> int:
        return sum(bool(pod["spec"].get("schedulingGates")) for pod in self.api.all("pods"))

    def condition(self, kind: str, gang: str = "s-0") -> dict[str, Any]:
        conditions = (self.api.get("podgangs", gang) or {}).get("status", {}).get("conditions", [])
        return next((entry for entry in conditions if entry["type"] == kind), {})

    def minimum_group_counts(self) -> list[int]:
        return [
            group["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for group in self.api.all("compositepodgroups")
        ]

    async def take(self, plural: str, name: str) -> None:
        await self.api.delete((plural, "ns", name))

    async def take_pod(self, clique: str) -> None:
        await self.take("pods", self.pods()[clique][0]["metadata"]["name"])


def clique(name: str, replicas: int, minimum: int) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "i"}]}
    spec = {"roleName": name, "replicas": replicas, "minAvailable": minimum, "podSpec": pod}
    return {"name": name, "spec": spec}


def workload(*cliques: dict[str, Any], groups: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    template = {
        "cliques": list(cliques) or [clique("p", 4, 1), clique("d", 2, 1)],
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "podCliqueScalingGroups": groups or [],
    }
    return {
        "metadata": {"name": "s", "namespace": "ns", "finalizers": [labels.SET_FINALIZER]},
        "spec": {"replicas": 1, "updateStrategy": {"type": "RollingRecreate"}, "template": template},
    }


def group_of(pod: dict[str, Any]) -> str | None:
    """Return the name of a pod's PodGroup."""
    name: str | None = pod["spec"].get("schedulingGroup", {}).get("podGroupName")
    return name


async def deploy(cluster: Cluster, document: dict[str, Any] | None = None) -> None:
    """Create a set, and wait until all its pods are Ready."""
    await cluster.api.create("podcliquesets", "ns", document or workload())
    await cluster.until(lambda: cluster.condition("Ready").get("status") == "True")
    await cluster.wait_until_at_rest()


async def test_the_minimum_is_created_first_and_the_other_pods_follow():
    cluster = Cluster()
    cluster.api.held_back = True
    async with cluster.run_operator():
        await cluster.api.create("podcliquesets", "ns", workload())
        await cluster.until(lambda: len(cluster.api.all("pods")) == 2 and not cluster.gates())
        await cluster.wait_until_at_rest()
        assert cluster.counts() == {"s-0-p": 1, "s-0-d": 1}
        assert [len(cluster.api.all(kind)) for kind in KINDS] == [1, 1, 2]
        assert cluster.condition("Initialized")["status"] == "True"
        assert cluster.condition("Scheduled").get("status") == cluster.condition("Ready").get("status") == "False"
        cluster.api.held_back = False
        await cluster.until(lambda: cluster.condition("Ready").get("status") == "True")
        await cluster.wait_until_at_rest()
        assert cluster.counts() == {"s-0-p": 4, "s-0-d": 2}
        leaves = {
            g["metadata"]["labels"][labels.PODCLIQUE]: g["metadata"]["name"] for g in cluster.api.all("podgroups")
        }
        for name, pods in cluster.pods().items():
            assert {group_of(pod) for pod in pods} == {leaves[name]}
        references = (cluster.api.get("podgangs", "s-0") or {})["spec"]["podgroups"]
        assert [len(group["podReferences"]) for group in references] == [4, 2]
        assert cluster.condition("Scheduled")["status"] == "True"


async def test_all_pods_are_created_at_once_in_the_mode_of_the_proposal():
    cluster = Cluster(PROPOSED_MODE)
    cluster.api.held_back = True
    async with cluster.run_operator():
        await cluster.api.create("podcliquesets", "ns", workload())
        await cluster.until(lambda: len(cluster.api.all("pods")) == 6 and not cluster.gates())


async def test_no_pod_loses_its_gate_before_the_objects_exist():
    cluster = Cluster()
    async with cluster.run_operator():
        await deploy(cluster)
    last = max(i for i, (kind, verb, _) in enumerate(cluster.api.history) if kind in KINDS and verb == "ADDED")
    for kind, verb, item in cluster.api.history[:last]:
        assert kind != "pods" or verb == "ADDED" or item["spec"].get("schedulingGates")
    created = [item for kind, verb, item in cluster.api.history if kind == "pods" and verb == "ADDED"]
    assert all(group_of(item) for item in created)


async def test_a_gang_that_cannot_be_mapped_reports_this_and_its_pods_keep_their_gates():
    cluster = Cluster()
    async with cluster.run_operator():
        await cluster.api.create("podcliquesets", "ns", workload(*(clique(f"c{i}", 1, 1) for i in range(9))))
        await cluster.until(lambda: cluster.condition("Scheduled").get("reason") == planned.REFUSED)
        await cluster.wait_until_at_rest()
        assert '"s-0" has 9 PodGroups' in cluster.condition("Scheduled")["message"]
        assert cluster.gates() == 9 and not any(cluster.api.all(kind) for kind in KINDS)
        events = [e for e in cluster.api.all("events") if e["reason"] == planned.REFUSED]
        assert [(e["type"], e["regarding"]["name"]) for e in events] == [("Warning", "s-0")]


async def test_a_name_that_is_taken_is_reported_until_it_is_free():
    cluster = Cluster()
    await cluster.api.create("workloads", "ns", {"metadata": {"name": "s-0"}, "spec": {}})
    async with cluster.run_operator():
        await cluster.api.create("podcliquesets", "ns", workload())
        await cluster.until(lambda: cluster.condition("Scheduled").get("reason") == planned.REFUSED)
        assert "Workload ns/s-0 exists and is not controlled" in cluster.condition("Scheduled")["message"]
        await cluster.wait_until_at_rest()
        assert cluster.gates() == 2 and len(cluster.api.all("podgroups")) == 0
        await cluster.take("workloads", "s-0")
        await cluster.until(lambda: cluster.condition("Ready").get("status") == "True")
        assert cluster.condition("Scheduled")["reason"] != planned.REFUSED
        groups = {group_of(pod) for pod in cluster.api.all("pods")}
        assert groups == {group["metadata"]["name"] for group in cluster.api.all("podgroups")}


async def test_deleted_objects_are_recreated():
    cluster = Cluster()
    async with cluster.run_operator():
        await deploy(cluster)
        pods = {pod["metadata"]["uid"] for pod in cluster.api.all("pods")}
        for kind in KINDS:
            before = {item["metadata"]["name"] for item in cluster.api.all(kind)}
            for name in before:
                await cluster.take(kind, name)
            await cluster.until(
                lambda kind=kind, before=before: {i["metadata"]["name"] for i in cluster.api.all(kind)} == before
            )
        await cluster.wait_until_at_rest()
        assert {pod["metadata"]["uid"] for pod in cluster.api.all("pods")} == pods


async def test_a_lost_pod_does_not_wait_for_its_siblings():
    cluster = Cluster()
    async with cluster.run_operator():
        await deploy(cluster, workload(clique("p", 2, 2), clique("d", 1, 1)))
        assert cluster.minimum_group_counts() == [2]
        cluster.api.held_back = True
        await cluster.take_pod("s-0-p")
        await cluster.until(
            lambda: cluster.minimum_group_counts() == [1] and len(cluster.pods()["s-0-p"]) == 2 and not cluster.gates()
        )
        [root] = cluster.api.all("compositepodgroups")
        cluster.api.held_back = False
        await cluster.until(lambda: cluster.minimum_group_counts() == [2])
        assert cluster.api.all("compositepodgroups")[0]["metadata"]["name"] == root["metadata"]["name"]
        assert len(cluster.api.all("workloads")) == 1


async def test_a_lost_pod_changes_nothing_in_the_mode_of_the_proposal():
    cluster = Cluster(PROPOSED_MODE)
    async with cluster.run_operator():
        await deploy(cluster, workload(clique("p", 2, 2), clique("d", 1, 1)))
        await cluster.take_pod("s-0-p")
        await cluster.until(lambda: len(cluster.pods()["s-0-p"]) == 2)
        await cluster.wait_until_at_rest()
    assert [
        item["metadata"]["name"] for k, v, item in cluster.api.history if k == "compositepodgroups" and v == "DELETED"
    ] == []


async def test_a_gang_that_lost_all_pods_is_placed_as_a_whole_again():
    cluster = Cluster()
    async with cluster.run_operator():
        await deploy(cluster)
        cluster.api.held_back = True
        for pod in cluster.api.all("pods"):
            await cluster.take("pods", pod["metadata"]["name"])
        await cluster.until(
            lambda: cluster.counts() == {"s-0-p": 1, "s-0-d": 1} and cluster.minimum_group_counts() == [2]
        )
        cluster.api.held_back = False
        await cluster.until(lambda: cluster.counts() == {"s-0-p": 4, "s-0-d": 2})


async def test_a_scaling_group_that_shrinks_and_grows_reuses_no_names():
    cluster = Cluster()
    groups = [{"name": "g", "cliqueNames": ["w"], "replicas": 2, "minAvailable": 1}]
    async with cluster.run_operator():
        await deploy(cluster, workload(clique("w", 1, 1), groups=groups))
        await cluster.until(lambda: cluster.api.get("workloads", "s-0-g-0"))
        await cluster.wait_until_at_rest()

        def of_scaled(kind: str) -> set[str]:
            items = cluster.api.all(kind)
            return {i["metadata"]["name"] for i in items if i["metadata"]["labels"][labels.PODGANG] == "s-0-g-0"}

        before = of_scaled("podgroups") | of_scaled("compositepodgroups")
        for name in of_scaled("podgroups"):  # as the finalizer of Kubernetes does
            finalized = {"metadata": {"finalizers": ["scheduling.k8s.io/podgroup-protection"]}}
            await cluster.api.patch(("podgroups", "ns", name), finalized, "merge", False)
        address = ("podcliquescalinggroups", "ns", "s-0-g")
        await cluster.api.patch(address, {"spec": {"replicas": 1}}, "merge", False)
        await cluster.until(lambda: cluster.api.get("podgangs", "s-0-g-0") is None)
        await cluster.api.patch(address, {"spec": {"replicas": 2}}, "merge", False)
        await cluster.until(lambda: cluster.condition("Ready", "s-0-g-0").get("status") == "True")
        after = of_scaled("podgroups") | of_scaled("compositepodgroups")
        assert len(before) == 2 and len(after - before) == 2
        groups_of_pods = {
            group_of(pod) for pod in cluster.api.all("pods") if pod["metadata"]["labels"][labels.PODGANG] == "s-0-g-0"
        }
        assert not groups_of_pods & before


async def test_pods_that_change_their_group_are_deleted_before_their_index_is_reused():
    cluster = Cluster()
    cluster.api.held_back = True
    constraint = {"topologyName": "fleet", "pack": {"required": "rack"}}
    document = workload({**clique("p", 2, 2), "topologyConstraint": constraint})
    binding = {"metadata": {"name": "fleet"}, "spec": {"levels": [{"domain": "rack", "key": "r"}]}}

    def groups() -> set[str | None]:
        return {group_of(pod) for pod in cluster.api.all("pods")}

    async with cluster.run_operator():
        await cluster.api.create("clustertopologybindings", "", binding)
        await cluster.api.create("podcliquesets", "ns", document)
        await cluster.until(lambda: len(cluster.api.all("pods")) == 2 and not cluster.gates())
        before = groups()
        await cluster.api.delete(("clustertopologybindings", "", "fleet"))
        await cluster.until(lambda: len(cluster.api.all("pods")) == 2 and not groups() & before)
    active: dict[str, str] = {}
    for kind, event, pod in cluster.api.history:
        if kind == "pods":
            meta = pod["metadata"]
            active.pop(meta["name"], None)
            if event != "DELETED" and "deletionTimestamp" not in meta:
                active[meta["name"]] = meta["labels"][labels.POD_INDEX]
            assert len(set(active.values())) == len(active)


async def test_a_preferred_topology_is_ignored_with_one_event():
    cluster = Cluster()
    levels = {"levels": [{"domain": "rack", "key": "r"}]}
    document = workload(clique("p", 1, 1))
    constraint = {"topologyName": "fleet", "pack": {"preferred": "rack"}}
    document["spec"]["template"]["topologyConstraint"] = constraint
    async with cluster.run_operator():
        await cluster.api.create("clustertopologybindings", "", {"metadata": {"name": "fleet"}, "spec": levels})
        await deploy(cluster, document)
        assert (cluster.api.get("podgangs", "s-0") or {})["spec"]["topologyConstraint"]
    assert len([e for e in cluster.api.all("events") if e["reason"] == planned.PREFERRED]) == 1
    assert all("schedulingConstraints" not in item["spec"] for item in cluster.api.all("compositepodgroups"))


async def test_running_pods_stay_when_the_back_end_is_enabled_and_new_pods_join():
    cluster = Cluster()
    async with cluster.run_operator(enabled=False):
        await cluster.api.create("podcliquesets", "ns", workload(clique("p", 3, 2)))
        await cluster.until(lambda: len(cluster.api.all("pods")) == 3)
    running = {pod["metadata"]["uid"] for pod in cluster.api.all("pods")}
    assert not any("schedulingGroup" in pod["spec"] for pod in cluster.api.all("pods"))
    async with cluster.run_operator():
        await cluster.until(lambda: cluster.api.all("podgroups"))
        await cluster.wait_until_at_rest()
        assert {pod["metadata"]["uid"] for pod in cluster.api.all("pods")} == running
        [leaf] = cluster.api.all("podgroups")
        assert leaf["spec"]["schedulingPolicy"] == {"gang": {"minCount": 1}}  # two pods run outside the group
        await cluster.take_pod("s-0-p")
        await cluster.until(lambda: any(pod["metadata"]["uid"] not in running for pod in cluster.api.all("pods")))
        [new] = [pod for pod in cluster.api.all("pods") if pod["metadata"]["uid"] not in running]
        assert group_of(new) == leaf["metadata"]["name"]


async def test_nothing_is_written_while_the_back_end_is_disabled():
    cluster = Cluster()
    async with cluster.run_operator(enabled=False):
        await cluster.api.create("podcliquesets", "ns", workload())
        await cluster.until(lambda: len(cluster.api.all("pods")) == 6 and not cluster.gates())
        await cluster.wait_until_at_rest()
    assert not any(cluster.api.all(kind) for kind in KINDS) and not cluster.condition("Scheduled")
    assert not any("schedulingGroup" in pod["spec"] for pod in cluster.api.all("pods"))


async def test_gangs_of_other_schedulers_are_unchanged():
    cluster = Cluster()
    document = workload(clique("p", 2, 1))
    document["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "other"
    async with cluster.run_operator():
        await cluster.api.create("podcliquesets", "ns", document)
        await cluster.until(lambda: len(cluster.api.all("pods")) == 2)
        await cluster.wait_until_at_rest()
    assert not any(cluster.api.all(kind) for kind in KINDS)
