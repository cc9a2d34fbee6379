"""Tests that the reference decides an instance that is written as Kubernetes objects in the same way as the instance
itself."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given

from conformance.grove.scheduling import manifests, scenarios, strategies
from conformance.grove.scheduling.instance import Instance
from conformance.grove.scheduling.rules import must_breaches, verdict
from reference_impl.api.models import PodGang
from reference_impl.scheduler import cycle, snapshot
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.model import Node, Pod

TAINT = {"key": "pool", "value": "p", "effect": "NoSchedule"}
TESTBED = manifests.Testbed(
    "ns",
    "p",
    "mine",
    selector={"example.com/pool": "p"},
    taints=({**TAINT, "key": "example.com/pool"},),
    tolerations=({"key": "example.com/pool", "operator": "Exists"},),
)
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def plan_objects(instance: Instance):
    """Run one scheduling cycle over the objects, and return its plan and the pods as a watch would show them
    afterwards."""
    priorities = {
        priority_class["metadata"]["name"]: priority_class["value"]
        for priority_class in manifests.priority_classes(instance)
    }
    documents = [*manifests.pods(instance, TESTBED), *manifests.running_pods(instance, TESTBED)]
    states = {manifests.object_name(pod.name): pod.state for pod in instance.running}
    for document in documents:  # as admission and the cluster would set them
        document["metadata"]["uid"] = document["metadata"]["name"]
        document["spec"]["priority"] = priorities.get(document["spec"].get("priorityClassName"), 0)
        state = states.get(document["metadata"]["name"])
        if state == "terminating":
            document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if state == "finished":
            document["status"] = {"phase": "Succeeded"}
    pods = [msgspec.convert(document, Pod) for document in documents]
    nodes = [
        msgspec.convert({**n, "status": {**n["status"], **READY}}, Node) for n in manifests.nodes(instance, TESTBED)
    ]
    gangs = [
        snapshot.gang(msgspec.convert({**document, **manifests.gang_status("now")}, PodGang), pods, "mine", {})
        for document in manifests.gangs(instance, TESTBED)
    ]
    other_pods = snapshot.other_pods(pods, {gang.name for gang in gangs}, ())
    plan = cycle.plan(gangs, Capacity(nodes, snapshot.used_resources(pods, {}), ClusterState(pods=pods)), other_pods)
    bound = {pod.metadata.name: node for pod, node in plan.bindings}
    evicted = {eviction.pod.metadata.name for eviction in plan.evictions}
    for document in documents:
        if node := bound.get(document["metadata"]["name"]):
            document["spec"]["nodeName"] = node
    return plan, [document for document in documents if document["metadata"]["name"] not in evicted]


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.id) for s in scenarios.load()])
def test_scenarios_written_as_objects_are_decided_in_the_same_way(scenario):
    plan, pods = plan_objects(scenario.instance)
    if not plan.evictions:
        assert verdict(scenario.instance, manifests.outcome(scenario.instance, pods, TESTBED)) == []


@given(strategies.instances())
def test_plans_for_generated_instances_as_objects_breach_no_must(instance):
    plan, pods = plan_objects(instance)
    if not plan.evictions:
        assert must_breaches(verdict(instance, manifests.outcome(instance, pods, TESTBED))) == []


def test_names_and_domains_match_the_node_pool():
    (scenario,) = [s for s in scenarios.load() if s.id == "GS-S13"]
    fleet = manifests.nodes(scenario.instance, TESTBED)
    assert [node["metadata"]["name"] for node in fleet] == ["p-a1", "p-a2", "p-b1", "p-b2"]
    racks = Counter(node["metadata"]["labels"]["kubernetes.io/rack"] for node in fleet)
    assert racks == {"p-A": 2, "p-B": 2}
    (gang,) = manifests.gangs(scenario.instance, TESTBED)
    assert gang["spec"]["topologyConstraint"] == {"packConstraint": {"required": "kubernetes.io/rack"}}
    assert len(gang["spec"]["podgroups"][0]["podReferences"]) == 3


def test_deleted_pods_count_as_evicted_and_bound_pods_as_placed():
    (scenario,) = [s for s in scenarios.load() if s.id == "GS-S31"]
    pods = manifests.pods(scenario.instance, TESTBED)
    for pod in pods:
        pod["spec"]["nodeName"] = "p-n1"
    outcome = manifests.outcome(scenario.instance, pods, TESTBED)
    assert outcome.evicted == {"l1", "l2"} and outcome.placed == {"H": {"w": {"n1": 2}}}
