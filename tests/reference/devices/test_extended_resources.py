"""Tests of pods that request devices by the name of an extended resource."""

from __future__ import annotations

from typing import Any

from reference_impl.scheduler.devices import extended
from tests.reference.devices.examples import Cluster, allocated, claim, device_slice, gang
from tests.reference.filters.scenes import node, pod, requests

GPU = "nvidia.com/gpu"
CLASSES = [
    {
        "metadata": {"name": "gpu"},
        "spec": {
            "extendedResourceName": GPU,
            "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
        },
    }
]
SLICES = [device_slice("a", "a0", "a1"), device_slice("b", "b0", "b1")]


def with_gpus(name: str, count: int, **fields: Any) -> Any:
    return pod(name, containers=requests(**{GPU: str(count), "cpu": "1"}), **fields)


def test_devices_serve_a_resource_that_no_node_offers() -> None:
    pods = [with_gpus(f"p{i}", 1) for i in range(4)]
    cluster = Cluster([node("a"), node("b")], SLICES, [], classes=CLASSES)
    plan = cluster.plan(gang("g", pods))
    assert sorted(name for _, name in plan.bindings) == ["a", "a", "b", "b"]
    results = [result for decision in cluster.decisions(plan) for result in decision.results or ()]
    assert sorted(result.device for result in results) == ["a0", "a1", "b0", "b1"]


def test_a_gang_that_lacks_devices_is_not_placed() -> None:
    plan = Cluster([node("a"), node("b")], SLICES, [], classes=CLASSES).plan(
        gang("g", [with_gpus(f"p{i}", 2) for i in range(3)])
    )
    assert plan.bindings == [] and "DynamicResources" in str(plan.waiting["g"])


def test_nodes_that_offer_the_resource_serve_it_themselves() -> None:
    nodes = [node("a"), node("c", status={GPU: "1"})]
    plan = Cluster(nodes, SLICES[:1], [], classes=CLASSES).plan(gang("g", [with_gpus("p", 1)]))
    assert [name for _, name in plan.bindings] == ["c"]


def test_the_claim_of_a_bound_pod_holds_its_devices() -> None:
    bound = with_gpus("bound", 1, at="a")
    own_claim = claim("bound-x", owner="bound", status=allocated("a", "a0", users=("bound",)))
    own_claim.metadata.annotations = {extended.ANNOTATION: "true"}
    cluster = Cluster([node("a")], SLICES[:1], [own_claim], (bound,), classes=CLASSES)
    assert cluster.plan(gang("g", [with_gpus("p", 2)])).bindings == []


def test_the_claim_and_the_status_name_containers_and_requests() -> None:
    subject = with_gpus("p", 2)
    classes = {GPU: "gpu"}
    manifest = extended.manifest(subject, classes)
    assert manifest["metadata"]["annotations"] == {extended.ANNOTATION: "true"}
    exactly = {"deviceClassName": "gpu", "count": 2}
    assert manifest["spec"]["devices"]["requests"] == [{"name": "container-0-request-0", "exactly": exactly}]
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-0"}
    status = extended.pod_status(subject, "c", classes)
    assert status == {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [mapping]}}
