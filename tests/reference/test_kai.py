"""Tests of the back-end for KAI and of the objects that it writes, both alone and with the operator on an in-memory API
server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

from reference_impl.api.kai import KaiPodGroup
from reference_impl.api.models import ClusterTopologyBinding, PodCliqueSet, PodGang
from reference_impl.control.features import Features
from reference_impl.control.operator import Operator
from reference_impl.plan import kai, labels
from reference_impl.plan.lines import NAMES
from reference_impl.runtime import configuration
from tests.reference.coherent.small_api import SmallApi, SmallClient

KAI = kai.SCHEDULER
TIMEOUT_SECONDS = 120.0


def packed(**keys: str) -> dict[str, Any]:
    return {"topologyConstraint": {"packConstraint": keys}}


def group(name: str, minimum: int, **fields: Any) -> dict[str, Any]:
    return {"name": name, "minReplicas": minimum, "podReferences": [], **fields}


def gang(*groups: dict[str, Any], notes: dict[str, str] | None = None, **spec: Any) -> PodGang:
    metadata = {"name": "g", "namespace": "ns", "uid": "1", "annotations": notes or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"podgroups": groups, **spec}}, PodGang)


def pcs(labels: Any = None, annotations: Any = None, *cliques: Any) -> PodCliqueSet:
    metadata = {"name": "s", "namespace": "ns", "labels": labels, "annotations": annotations}
    spec = {"roleName": "r", "replicas": 1, "podSpec": {}}
    templates = [{"name": f"c{i}", "spec": spec, **overrides} for i, overrides in enumerate(cliques)]
    return msgspec.convert(
        {"metadata": metadata, "spec": {"replicas": 1, "template": {"cliques": templates}}}, PodCliqueSet
    )


def test_a_gang_becomes_a_pod_group_with_subgroups():
    podgang = gang(
        group("router", 1),
        group("p0", 2, **packed(required="host")),
        group("d0", 0),
        notes={labels.TOPOLOGY_NAME: "fleet"},
        priorityClassName="high",
        topologyConstraint={"packConstraint": {"required": "block", "preferred": "rack"}},
        topologyConstraintGroupConfigs=[
            {"name": "r0", "podGroupNames": ["p0", "d0"], **packed(required="rack")},
            {"name": "empty", "podGroupNames": []},
        ],
    )
    pod_group = kai.pod_group(podgang, "q")
    assert pod_group["spec"] == {
        "minMember": 3,
        "queue": "q",
        "priorityClassName": "high",
        "topologyConstraint": {
            "topology": "fleet",
            "requiredTopologyLevel": "block",
            "preferredTopologyLevel": "rack",
        },
        "subGroups": [
            {
                "name": "r0",
                "minSubGroup": 2,
                "topologyConstraint": {"topology": "fleet", "requiredTopologyLevel": "rack"},
            },
            {"name": "router", "minMember": 1},
            {
                "name": "p0",
                "minMember": 2,
                "parent": "r0",
                "topologyConstraint": {"topology": "fleet", "requiredTopologyLevel": "host"},
            },
            {"name": "d0", "minMember": 0, "parent": "r0"},
        ],
    }
    assert pod_group["metadata"]["name"] == "g" and pod_group["metadata"]["ownerReferences"][0]["kind"] == "PodGang"


def test_a_constraint_without_a_topology_cannot_be_translated():
    with pytest.raises(
        kai.KaiMappingError, match="topology name cannot be empty when topology constraints are defined"
    ):
        kai.pod_group(gang(group("a", 1, **packed(preferred="rack"))), "q")
    named = gang(group("a", 1, **packed(preferred="rack")), notes={kai.TOPOLOGY: "own"})
    assert kai.pod_group(named, "q")["spec"]["subGroups"][0]["topologyConstraint"]["topology"] == "own"


@pytest.mark.parametrize(
    ("pod_clique_set", "queue"),
    [
        (pcs({kai.QUEUE: "a"}, {kai.QUEUE: "b"}), "a"),
        (pcs(None, {kai.QUEUE: "b"}), "b"),
        (pcs(None, None, {"labels": {kai.QUEUE: "c"}}, {"annotations": {kai.QUEUE: "c"}}, {}), "c"),
    ],
)
def test_the_queue_comes_from_the_set_or_its_cliques(pod_clique_set: PodCliqueSet, queue: str):
    assert kai.queue(gang(), pod_clique_set) == queue


def test_a_gang_without_a_unique_queue_cannot_be_translated():
    with pytest.raises(kai.KaiMappingError, match="no KAI queue is configured on PodCliqueSet ns/s"):
        kai.queue(gang(), pcs(None, None, {}))
    with pytest.raises(kai.KaiMappingError, match=r"conflicting KAI queues .*: \[c d\]"):
        kai.queue(gang(), pcs(None, None, {"labels": {kai.QUEUE: "d"}}, {"labels": {kai.QUEUE: "c"}}))
    with pytest.raises(kai.KaiMappingError, match="no KAI queue is configured on PodGang ns/g"):
        kai.queue(gang(), None)
    assert kai.queue(gang(notes={kai.QUEUE: "own"}), None) == "own"


def test_a_correction_keeps_fields_of_other_clients():
    desired = kai.pod_group(gang(group("a", 2)), "q")
    current = msgspec.convert({"metadata": desired["metadata"], "spec": dict(desired["spec"])}, KaiPodGroup)
    current.spec |= {"queue": "other", "markUnschedulable": True, "schedulingBackoff": 1, "topologyConstraint": {}}
    assert kai.correction(desired, current) == {}
    current.spec["minMember"] = 1
    assert kai.correction(desired, current) == {"spec": {"minMember": 2}}
    current.spec |= {"minMember": 2, "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}}
    assert kai.correction(desired, current) == {"spec": {"topologyConstraint": None}}


def test_no_topology_is_created_for_a_binding_with_an_external_topology():
    spec: dict[str, Any] = {"levels": [{"domain": "rack", "key": "r"}, {"domain": "host", "key": "h"}]}
    binding = msgspec.convert({"metadata": {"name": "fleet", "uid": "1"}, "spec": spec}, ClusterTopologyBinding)
    topology = kai.topology(binding)
    assert topology is not None and topology["spec"] == {"levels": [{"nodeLabel": "r"}, {"nodeLabel": "h"}]}
    spec["schedulerTopologyBindings"] = [{"schedulerName": KAI, "topologyReference": "theirs"}]
    binding = msgspec.convert({"metadata": {"name": "fleet"}, "spec": spec}, ClusterTopologyBinding)
    assert kai.topology(binding) is None


def test_the_configuration_enables_the_back_end(tmp_path: Any):
    def load(text: str) -> configuration.Configuration:
        (tmp_path / "c.yaml").write_text(text)
        return configuration.load(tmp_path / "c.yaml", own_scheduler="own")

    assert load("scheduler: {profiles: [{name: kai-scheduler}]}").scheduler.backends == ()
    assert load("scheduler: {profiles: [{name: kai-scheduler, config: {backend: true}}]}").scheduler.backends == (KAI,)
    with pytest.raises(
        configuration.InvalidConfigurationError, match=r"profiles\[0\]\.config\.backend: volcano has none"
    ):
        load("scheduler: {profiles: [{name: volcano, config: {backend: true}}]}")


# -- with the operator -------------------------------------------------------------------------------------------------


class Cluster:
    def __init__(self) -> None:
        self.api = SmallApi()

    @asynccontextmanager
    async def run_operator(self, *, enabled: bool = True) -> AsyncIterator[Operator]:
        operator = Operator(
            SmallClient(self.api), scheduler_name=KAI, features=Features(topology=True, kai=enabled), line=NAMES
        )
        tasks = [asyncio.create_task(operator.run()), asyncio.create_task(self.api.run_pods())]
        await operator.ready.wait()
        try:
            yield operator
            await self.wait_until_at_rest(operator)
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError, BaseExceptionGroup):
                    await task

    async def wait_until_at_rest(self, operator: Operator) -> None:
        await self.until(lambda: operator.is_idle(0.1) and self.api.all_seen() and self.api.pods_started())

    async def until(self, predicate: Callable[[], Any]) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + TIMEOUT_SECONDS
        while not predicate():
            assert loop.time() < end, self.api.writes[-5:]
            await asyncio.sleep(0.02)

    def spec(self, name: str = "s-0") -> dict[str, Any]:
        pod_group = self.api.get("podgroups", name)
        return {} if pod_group is None else dict(pod_group["spec"])


def workload(**metadata: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "i"}]}
    clique = {"name": "w", "spec": {"roleName": "w", "replicas": 2, "minAvailable": 2, "podSpec": pod}}
    template = {"cliques": [clique], "headlessServiceConfig": {"publishNotReadyAddresses": True}}
    return {
        "metadata": {"name": "s", "namespace": "ns", "finalizers": [labels.SET_FINALIZER], **metadata},
        "spec": {"replicas": 1, "updateStrategy": {"type": "RollingRecreate"}, "template": template},
    }


async def test_gangs_and_pods_of_a_set_are_written_for_kai():
    cluster = Cluster()
    async with cluster.run_operator() as operator:
        await cluster.api.create("podcliquesets", "ns", workload(labels={kai.QUEUE: "q"}))
        await cluster.until(lambda: cluster.spec() and len(cluster.api.all("pods")) == 2)
        await cluster.wait_until_at_rest(operator)
        for pod in cluster.api.all("pods"):
            meta = pod["metadata"]
            assert meta["annotations"] == {kai.SKIP_PODGROUPER: "true", kai.POD_GROUP: "s-0"}
            assert meta["labels"][kai.SUBGROUP] == "s-0-w"
        assert cluster.spec() == {"minMember": 2, "queue": "q", "subGroups": [{"name": "s-0-w", "minMember": 2}]}
        [created] = [w for w in cluster.api.writes if w == ("ADDED", ("podgroups", "ns", "s-0"))]
        assert created

        # A queue that another client has changed stays, as does the gang's annotation, regardless of what is
        # reconciled.
        await cluster.api.patch(
            ("podgroups", "ns", "s-0"), {"spec": {"queue": "other", "minMember": 1}}, "merge", False
        )
        await cluster.until(lambda: cluster.spec()["minMember"] == 2)
        labelled = {"metadata": {"labels": {"example.com/team": "x"}}}
        await cluster.api.patch(("podcliquesets", "ns", "s"), labelled, "merge", False)

        def gang_of_set() -> dict[str, Any]:
            return (cluster.api.get("podgangs", "s-0") or {})["metadata"]

        await cluster.until(lambda: gang_of_set()["labels"].get("example.com/team") == "x")
        await cluster.wait_until_at_rest(operator)
        assert gang_of_set()["annotations"][kai.SKIP_PODGROUPER] == "true" and cluster.spec()["queue"] == "other"

        await cluster.api.delete(("podcliquesets", "ns", "s"))
        await cluster.until(lambda: not cluster.api.all("podgroups"))


async def test_a_gang_without_a_queue_gets_an_event_and_no_pod_group():
    cluster = Cluster()
    async with cluster.run_operator():
        await cluster.api.create("podcliquesets", "ns", workload())
        await cluster.until(lambda: any(e["reason"] == kai.MAPPING_FAILED for e in cluster.api.all("events")))
    assert not cluster.api.all("podgroups")


async def test_gangs_created_by_other_clients_are_also_served():
    cluster = Cluster()
    meta = {"name": "g", "labels": {labels.SCHEDULER_NAME: KAI, kai.QUEUE: "q"}}
    pod = {"name": "a", "labels": {labels.PODGANG: "g", labels.PODCLIQUE: "g-w"}}
    async with cluster.run_operator():
        await cluster.api.create("podgangs", "ns", {"metadata": meta, "spec": {"podgroups": [group("g-w", 1)]}})
        await cluster.api.create("pods", "ns", {"metadata": pod, "spec": {"schedulerName": KAI}})
        other = {"metadata": {**pod, "name": "b"}, "spec": {"schedulerName": "other"}}
        await cluster.api.create("pods", "ns", other)
        await cluster.until(
            lambda: cluster.spec("g") and (cluster.api.get("pods", "a") or {})["metadata"].get("annotations")
        )
    current = cluster.api.get("pods", "a")
    assert current is not None and current["metadata"]["annotations"][kai.POD_GROUP] == "g"
    assert current["metadata"]["labels"][kai.SUBGROUP] == "g-w"
    assert "annotations" not in (cluster.api.get("pods", "b") or {})["metadata"]


async def test_a_topology_follows_its_binding():
    cluster = Cluster()
    spec = {"levels": [{"domain": "rack", "key": "r"}]}

    def levels() -> list[str]:
        topology = cluster.api.get("topologies", "fleet", "")
        return [level["nodeLabel"] for level in topology["spec"]["levels"]] if topology else []

    async with cluster.run_operator():
        await cluster.api.create("clustertopologybindings", "", {"metadata": {"name": "fleet"}, "spec": spec})
        await cluster.until(lambda: levels() == ["r"])
        further_level = {"spec": {"levels": [{"domain": "block", "key": "b"}, *spec["levels"]]}}
        await cluster.api.patch(("clustertopologybindings", "", "fleet"), further_level, "merge", False)
        await cluster.until(lambda: levels() == ["b", "r"])
        await cluster.api.delete(("clustertopologybindings", "", "fleet"))
        await cluster.until(lambda: levels() == [])


async def test_nothing_is_written_while_the_back_end_is_disabled():
    cluster = Cluster()
    async with cluster.run_operator(enabled=False):
        await cluster.api.create("podcliquesets", "ns", workload(labels={kai.QUEUE: "q"}))
        await cluster.until(lambda: len(cluster.api.all("pods")) == 2)
    assert not cluster.api.all("podgroups")
    assert all("annotations" not in pod["metadata"] for pod in cluster.api.all("pods"))
    assert kai.SKIP_PODGROUPER not in ((cluster.api.get("podgangs", "s-0") or {})["metadata"].get("annotations") or {})


async def test_the_status_of_a_binding_reports_whether_topologies_have_its_levels():
    cluster = Cluster()
    levels = [{"domain": "rack", "key": "r"}]
    named = [{"schedulerName": KAI, "topologyReference": "theirs"}]

    def sync_status(binding: str) -> tuple[str, str, list[bool]]:
        status = (cluster.api.get("clustertopologybindings", binding, "") or {}).get("status") or {}
        [condition] = status.get("conditions") or [{"status": "", "reason": ""}]
        entries = status.get("schedulerTopologyStatuses") or []
        return condition["status"], condition["reason"], [entry["inSync"] for entry in entries]

    async def bind(binding: str, spec: dict[str, Any]) -> None:
        await cluster.api.create("clustertopologybindings", "", {"metadata": {"name": binding}, "spec": spec})

    async with cluster.run_operator():
        topology = {"metadata": {"name": "theirs"}, "spec": {"levels": [{"nodeLabel": "r"}]}}
        await cluster.api.create("topologies", "", topology)
        await bind("managed", {"levels": levels})
        await bind("external", {"levels": levels, "schedulerTopologyBindings": named})
        await cluster.api.create("topologies", "", {**topology, "metadata": {"name": "foreign"}})
        await bind("foreign", {"levels": levels})
        other = {"schedulerName": "other", "topologyReference": "x"}
        await bind("unknown", {"levels": levels, "schedulerTopologyBindings": [other]})
        await cluster.until(lambda: sync_status("managed") == sync_status("external") == ("False", "InSync", [True]))
        await cluster.until(lambda: sync_status("foreign") == ("True", "Drift", [False]))
        await cluster.until(lambda: sync_status("unknown") == ("Unknown", "TopologyNotFound", [True, False]))
        further_level = {"spec": {"levels": [{"domain": "block", "key": "b"}, *levels]}}
        await cluster.api.patch(("clustertopologybindings", "", "external"), further_level, "merge", False)
        await cluster.until(lambda: sync_status("external") == ("True", "Drift", [False]))
        await cluster.api.patch(
            ("clustertopologybindings", "", "external"), {"spec": {"levels": levels}}, "merge", False
        )
        await cluster.until(lambda: sync_status("external") == ("False", "InSync", [True]))
        await cluster.api.delete(("topologies", "", "theirs"))
        await cluster.until(lambda: sync_status("external") == ("True", "Drift", [False]))
