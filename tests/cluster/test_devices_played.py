"""Tests on a real control plane of nodes whose GPUs are devices: claims, failures, and slices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.cluster import compute_domains, gpu_devices, gpu_partitions
from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.errors import UsageError
from conformance.grove_cluster import GroveCluster
from conformance.testing import devices

pytestmark = pytest.mark.cluster
API = ("resource.k8s.io", "v1")
DOMAINS = ("resource.nvidia.com", "v1beta1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroveCluster]:
    state = StateRoot(tmp_path_factory.mktemp("state") / "root")
    with GroveCluster(Cluster.up("devices", settings=ClusterSettings(addons=True), state=state)) as cluster:
        cluster.add_nodes("tiny:1", gpus="devices")
        yield cluster


@pytest.fixture
def namespace(cluster: GroveCluster) -> Iterator[str]:
    with cluster.namespace() as name:
        yield name
        pods = core(cluster)
        pods.delete_collection_namespaced_pod(name, grace_period_seconds=0)
        cluster.wait_for("no claim is allocated", lambda: not allocated(cluster, name))


def core(cluster: GroveCluster) -> Any:
    from kubernetes.client import CoreV1Api

    return CoreV1Api(cluster.client)


def resources(cluster: GroveCluster) -> Any:
    """Return the client for objects as dicts, of any kind."""
    from kubernetes.client import CustomObjectsApi

    return CustomObjectsApi(cluster.client)


def slices(cluster: GroveCluster, node: str) -> list[Any]:
    items = resources(cluster).list_cluster_custom_object(*API, "resourceslices")["items"]
    return [item for item in items if item["spec"].get("nodeName") == node]


def allocated(cluster: GroveCluster, namespace: str) -> dict[str, list[str]]:
    """Map the claims of a namespace that are allocated to the names of their devices."""
    items = resources(cluster).list_namespaced_custom_object(*API, namespace, "resourceclaims")["items"]
    devices_by_claim = {
        item["metadata"]["name"]: [name for *_, name in devices.allocated_devices(item)] for item in items
    }
    return {name: allocation for name, allocation in devices_by_claim.items() if allocation}


def create(
    cluster: GroveCluster, namespace: str, name: str, *, node: str = "", match: str = "", **request_fields: Any
) -> None:
    """Create a claim and a pod that uses it. All devices of the claim have the same value of the attribute `match`."""
    constraints = {"constraints": [{"matchAttribute": match}]} if match else {}
    claim = devices.claim(name, devices.claim_spec(devices.request(**request_fields), **constraints))
    resources(cluster).create_namespaced_custom_object(*API, namespace, "resourceclaims", claim)
    container = {"name": "main", "image": "image", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}
    placement = {"nodeName": node} if node else {}
    core(cluster).create_namespaced_pod(namespace, {"metadata": {"name": name}, "spec": {**spec, **placement}})


def is_running(cluster: GroveCluster, namespace: str, name: str) -> bool:
    phase: str = core(cluster).read_namespaced_pod(name, namespace).status.phase
    return phase == "Running"


def is_unschedulable(cluster: GroveCluster, namespace: str, name: str) -> bool:
    conditions = core(cluster).read_namespaced_pod(name, namespace).status.conditions or []
    return any(condition.reason == "Unschedulable" for condition in conditions)


def test_a_pod_waits_for_its_allocation(cluster: GroveCluster, namespace: str) -> None:
    create(cluster, namespace, "waiting", node="tiny-0")
    messages = cluster.wait_for("an event", lambda: messages_of(cluster, namespace, "FailedPrepareDynamicResources"))
    assert messages == ["Failed to prepare dynamic resources: ResourceClaim waiting is not allocated"]
    pod = core(cluster).read_namespaced_pod("waiting", namespace)
    assert pod.status.phase == "Pending"
    assert pod.status.container_statuses[0].state.waiting.reason == "ContainerCreating"


def messages_of(cluster: GroveCluster, namespace: str, reason: str) -> list[str]:
    return [event.message for event in core(cluster).list_namespaced_event(namespace).items if event.reason == reason]


def test_a_failed_device_is_not_allocated_until_it_is_repaired(cluster: GroveCluster, namespace: str) -> None:
    cluster.fail_gpu("tiny-0", "gpu-0", xid=48)
    create(cluster, namespace, "one")
    cluster.wait_for("the pod runs", lambda: is_running(cluster, namespace, "one"))
    assert allocated(cluster, namespace)["one"] == ["gpu-1"]
    create(cluster, namespace, "two")
    cluster.wait_for("no device is free", lambda: is_unschedulable(cluster, namespace, "two"))
    cluster.repair_gpu("tiny-0", "gpu-0")
    cluster.wait_for("the waiting pod runs", lambda: is_running(cluster, namespace, "two"))
    assert allocated(cluster, namespace)["two"] == ["gpu-0"]


def test_partitions_of_a_card_run_together_but_not_beside_the_card(cluster: GroveCluster, namespace: str) -> None:
    """Pods of the whole cards wait until the card that is partitioned is whole again."""
    (node,) = cluster.add_nodes("dgx-h100-mig:1", gpus="devices")
    half = [{"cel": {"expression": 'device.attributes["gpu.nvidia.com"].profile == "3g.40gb"'}}]
    whole = [{"cel": {"expression": 'device.attributes["gpu.nvidia.com"].productName.contains("H100")'}}]
    parent = "gpu.nvidia.com/parentUUID"
    create(cluster, namespace, "halves", deviceClassName="mig.nvidia.com", count=2, selectors=half, match=parent)
    cluster.wait_for("the pod with two partitions runs", lambda: is_running(cluster, namespace, "halves"))
    card = allocated(cluster, namespace)["halves"][0].partition("-mig-")[0]
    assert sorted(allocated(cluster, namespace)["halves"]) == [f"{card}-mig-3g40gb-0", f"{card}-mig-3g40gb-4"]
    create(cluster, namespace, "cards", count=8, selectors=whole)
    cluster.wait_for("a card is in use", lambda: is_unschedulable(cluster, namespace, "cards"))
    core(cluster).delete_namespaced_pod("halves", namespace)
    cluster.wait_for("the pod with all cards runs", lambda: is_running(cluster, namespace, "cards"))
    cluster.remove_nodes([node])


def test_the_slices_of_a_node_follow_its_partitions(cluster: GroveCluster) -> None:
    (node,) = cluster.add_nodes("dgx-h100-mig:1", gpus="devices")
    cluster.wait_for("three slices", lambda: len(slices(cluster, node)) == 3)
    assert {item["spec"]["pool"]["generation"] for item in slices(cluster, node)} == {1}
    core(cluster).patch_node(node, {"metadata": {"annotations": {gpu_partitions.PARTITIONS: None}}})
    cluster.wait_for("one slice", lambda: len(slices(cluster, node)) == 1)
    (item,) = slices(cluster, node)
    assert item["spec"]["pool"] == {"name": node, "generation": 2, "resourceSliceCount": 1}
    assert [device["name"] for device in item["spec"]["devices"]] == [f"gpu-{index}" for index in range(8)]
    cluster.remove_nodes([node])
    cluster.wait_for("no slice", lambda: not slices(cluster, node))


def test_slices_follow_nodes_and_are_written_once(cluster: GroveCluster) -> None:
    (node,) = cluster.add_nodes("tiny:1", gpus="devices")
    (first,) = cluster.wait_for("a slice", lambda: slices(cluster, node))
    cluster.fail_gpu(node, "gpu-1")
    cluster.repair_gpu(node, "gpu-1")
    (changed,) = slices(cluster, node)
    # One creation and two changes; a publisher that disagrees with what the API server stores would go on writing.
    assert changed["metadata"]["generation"] == first["metadata"]["generation"] + 2
    resources(cluster).delete_cluster_custom_object(*API, "resourceslices", first["metadata"]["name"])
    (restored,) = cluster.wait_for("the slice again", lambda: slices(cluster, node))
    assert restored["metadata"]["uid"] != first["metadata"]["uid"] and restored["spec"] == changed["spec"]
    cluster.remove_nodes([node])
    cluster.wait_for("no slice", lambda: not slices(cluster, node))


def create_domain(cluster: GroveCluster, namespace: str, name: str) -> str:
    """Create a ComputeDomain and return its uid once its template exists."""
    spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}}
    manifest = {"apiVersion": "/".join(DOMAINS), "kind": "ComputeDomain", "metadata": {"name": name}, "spec": spec}
    api = resources(cluster)
    domain = api.create_namespaced_custom_object(*DOMAINS, namespace, "computedomains", manifest)
    cluster.wait_for("a template", lambda: name in templates(cluster, namespace))
    return str(domain["metadata"]["uid"])


def templates(cluster: GroveCluster, namespace: str) -> list[str]:
    items = resources(cluster).list_namespaced_custom_object(*API, namespace, "resourceclaimtemplates")["items"]
    return [item["metadata"]["name"] for item in items]


def domain_nodes(cluster: GroveCluster, namespace: str, name: str) -> list[tuple[str, str]]:
    """Return the nodes of a domain and the states of its daemons there."""
    domain = resources(cluster).get_namespaced_custom_object(*DOMAINS, namespace, "computedomains", name)
    return [(entry["name"], entry["status"]) for entry in domain.get("status", {}).get("nodes", ())]


def create_pod_with_channel(cluster: GroveCluster, namespace: str, name: str, domain: str, node: str = "") -> None:
    reference = {"name": "channel", "resourceClaimTemplateName": domain}
    container = {"name": "main", "image": "image", "resources": {"claims": [{"name": "channel"}]}}
    spec = {"containers": [container], "resourceClaims": [reference], **({"nodeName": node} if node else {})}
    core(cluster).create_namespaced_pod(namespace, {"metadata": {"name": name}, "spec": spec})


def served_domain(cluster: GroveCluster, node: str) -> str:
    """Return the uid of the ComputeDomain that a node serves; empty if there is none."""
    return str(core(cluster).read_node(node).metadata.labels.get(compute_domains.DOMAIN, ""))


def test_a_node_serves_one_compute_domain_at_a_time(cluster: GroveCluster, namespace: str) -> None:
    """kube-scheduler places the pods. The node that the pod of the first domain leaves serves the second one."""
    (node,) = cluster.add_nodes("gb200-nvl72:1", gpus="devices")
    cluster.wait_for("the kind of the domains", lambda: serves_domains(cluster))
    first, second = (create_domain(cluster, namespace, name) for name in ("first", "second"))
    create_pod_with_channel(cluster, namespace, "a", "first")
    cluster.wait_for("the pod of the first domain runs", lambda: is_running(cluster, namespace, "a"))
    assert served_domain(cluster, node) == first
    assert domain_nodes(cluster, namespace, "first") == [(node, "Ready")]
    create_pod_with_channel(cluster, namespace, "b", "second")
    cluster.wait_for("no channel is free", lambda: is_unschedulable(cluster, namespace, "b"))
    assert domain_nodes(cluster, namespace, "second") == []
    core(cluster).delete_namespaced_pod("a", namespace)
    cluster.wait_for("the pod of the second domain runs", lambda: is_running(cluster, namespace, "b"))
    assert served_domain(cluster, node) == second
    assert domain_nodes(cluster, namespace, "first") == []
    for name in ("first", "second"):
        resources(cluster).delete_namespaced_custom_object(*DOMAINS, namespace, "computedomains", name)
    cluster.wait_for("the domains are deleted", lambda: not domain_names(cluster, namespace))
    assert templates(cluster, namespace) == [] and served_domain(cluster, node) == ""
    cluster.remove_nodes([node])


def serves_domains(cluster: GroveCluster) -> bool:
    from kubernetes.client import ApiException

    try:
        resources(cluster).list_cluster_custom_object(*DOMAINS, "computedomains")
    except ApiException as error:
        assert error.status == 404
        return False
    return True


def domain_names(cluster: GroveCluster, namespace: str) -> list[str]:
    items = resources(cluster).list_namespaced_custom_object(*DOMAINS, namespace, "computedomains")["items"]
    return [item["metadata"]["name"] for item in items]


def test_a_pod_waits_for_the_node_of_its_domain(cluster: GroveCluster, namespace: str) -> None:
    """A scheduler has allocated the channel of the node twice: the containers of the second pod do not start until the
    first pod is gone, and the node serves the other domain."""
    (node,) = cluster.add_nodes("gb200-nvl72:1", gpus="devices")
    cluster.wait_for("the kind of the domains", lambda: serves_domains(cluster))
    for name, pod in (("first", "a"), ("second", "b")):
        create_domain(cluster, namespace, name)
        create_pod_with_channel(cluster, namespace, pod, name, node)
        allocate_channel(cluster, namespace, pod, node)
        if name == "first":
            cluster.wait_for("the first pod runs", lambda: is_running(cluster, namespace, "a"))
    expected = f"the channel of node {node} is prepared for ResourceClaim a-channel-"
    reason = "FailedPrepareDynamicResources"
    cluster.wait_for("an event", lambda: any(expected in text for text in messages_of(cluster, namespace, reason)))
    assert not is_running(cluster, namespace, "b")
    core(cluster).delete_namespaced_pod("a", namespace)
    cluster.wait_for("the second pod runs", lambda: is_running(cluster, namespace, "b"))
    assert domain_nodes(cluster, namespace, "second") == [(node, "Ready")]
    cluster.remove_nodes([node])


def allocate_channel(cluster: GroveCluster, namespace: str, pod: str, node: str) -> None:
    """Allocate the channel of a node to the claim of a pod, and reserve the claim for the pod, as a scheduler does."""
    statuses = cluster.wait_for(
        "a claim", lambda: core(cluster).read_namespaced_pod(pod, namespace).status.resource_claim_statuses
    )
    name = statuses[0].resource_claim_name
    claim = resources(cluster).get_namespaced_custom_object(*API, namespace, "resourceclaims", name)
    result = {"request": "channel", "driver": compute_domains.DRIVER, "pool": node, "device": "channel-0"}
    config = [{"source": "FromClaim", **entry} for entry in claim["spec"]["devices"]["config"]]
    uid = core(cluster).read_namespaced_pod(pod, namespace).metadata.uid
    status = {
        "allocation": {"devices": {"results": [result], "config": config}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": uid}],
    }
    api = resources(cluster)
    api.patch_namespaced_custom_object_status(*API, namespace, "resourceclaims", name, {"status": status})


def test_an_unknown_node_or_device_is_a_mistake(cluster: GroveCluster) -> None:
    with pytest.raises(UsageError, match="fail_gpu: unknown node 'tiny-9' — did you mean"):
        cluster.fail_gpu("tiny-9", "gpu-0")
    with pytest.raises(UsageError, match="repair_gpu: node tiny-0 has no device 'gpu-9' — did you mean"):
        cluster.repair_gpu("tiny-0", "gpu-9")
    assert not gpu_devices.failures_of(core(cluster).read_node("tiny-0").metadata.annotations)
