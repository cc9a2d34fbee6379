"""Tests of nodes whose GPUs are devices, and of the rules by which pods wait for their claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster import gpu_devices, gpu_failures, nodes
from conformance.cluster.gpu_devices import DeviceFailure
from conformance.cluster.kubelet_sim import claims
from conformance.cluster.kubelet_sim.init_wait import SimulatedPod
from conformance.errors import UsageError
from tests.cluster.device_nodes import devices_node, slices

UNALLOCATED_CLAIM: dict[str, Any] = {"metadata": {"name": "gpu", "namespace": "ns"}}
ALLOCATED_CLAIM = {**UNALLOCATED_CLAIM, "status": {"allocation": {"devices": {"results": []}}}}
RESERVED_CLAIM = {
    **UNALLOCATED_CLAIM,
    "status": {**ALLOCATED_CLAIM["status"], "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
}


def pod(reference: dict[str, Any], statuses: list[dict[str, Any]] | None = None) -> SimulatedPod:
    manifest = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"resourceClaims": [{"name": "gpu", **reference}]},
        "status": {"phase": "Pending", "resourceClaimStatuses": statuses},
    }
    return msgspec.convert(manifest, SimulatedPod)


def test_a_node_offers_its_gpus_in_one_form_only() -> None:
    node = devices_node("dgx-h100")
    assert "nvidia.com/gpu" not in node["status"]["capacity"] | node["status"]["allocatable"]
    gpus = gpu_devices.gpus_of(node["metadata"]["annotations"])
    assert gpus is not None and (gpus.count, gpus.product) == (8, "NVIDIA-H100-80GB-HBM3")
    extended_node = devices_node("dgx-h100", "extended")
    assert [extended_node] == nodes.manifests("dgx-h100", 1)
    assert gpu_devices.gpus_of(extended_node["metadata"]["annotations"]) is None


def test_a_node_without_gpus_has_no_devices() -> None:
    assert gpu_devices.offered(nodes.manifests("cpu", 1), "devices") == nodes.manifests("cpu", 1)


def test_a_slice_has_the_devices_that_the_driver_publishes() -> None:
    spec = slice_spec(devices_node("gb200-nvl72"))
    assert spec["pool"] == {"name": "gb200-nvl72-0", "generation": 1, "resourceSliceCount": 1}
    devices = spec["devices"]
    assert [device["name"] for device in devices] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    attributes = devices[0]["attributes"]
    assert attributes["architecture"] == {"string": "Blackwell"}
    assert attributes["cudaComputeCapability"] == {"version": "10.0.0"}
    assert devices[0]["capacity"] == {"memory": {"value": "189471Mi"}}
    for name in ("uuid", "resource.kubernetes.io/pciBusID"):
        assert len({device["attributes"][name]["string"] for device in devices}) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"count": 1}',
        "not JSON",
        "[" * 100_000,
        '{"count": 1000000000, "product": "", "architecture": "", "compute_capability": "", "memory": ""}',
    ],
    ids=range(7),
)
def test_a_malformed_annotation_publishes_nothing(text: str) -> None:
    assert gpu_devices.gpus_of({gpu_devices.DEVICES: text}) is None


def test_a_node_with_too_many_gpus_for_devices_is_a_mistake() -> None:
    (node,) = nodes.manifests("tiny", 1)
    node["status"]["allocatable"]["nvidia.com/gpu"] = "100000"
    assert gpu_devices.offered([node], "extended") == [node]
    with pytest.raises(UsageError, match="--gpus: node tiny-0 has 100000 GPUs, too many for devices — at most 256"):
        gpu_devices.offered([node], "devices")


def slice_spec(node: nodes.Manifest) -> dict[str, Any]:
    """Return the spec of the only slice of a node."""
    (item,) = slices(node)
    spec: dict[str, Any] = item["spec"]
    return spec


def test_a_failed_device_has_a_taint_until_it_is_repaired() -> None:
    node = devices_node()
    annotations = node["metadata"]["annotations"]
    for device, failure in (("gpu-0", DeviceFailure(79)), ("gpu-1", DeviceFailure(48, drain=True))):
        annotations[gpu_devices.FAILED] = gpu_devices.with_failure(annotations, device, failure)
    first, second = slice_spec(node)["devices"]
    assert first["taints"] == [{"key": "conformance.grove.io/xid", "value": "79", "effect": "NoSchedule"}]
    assert second["taints"] == [{"key": "conformance.grove.io/xid", "value": "48", "effect": "NoExecute"}]
    annotations[gpu_devices.FAILED] = gpu_devices.with_failure(annotations, "gpu-0", None)
    first, second = slice_spec(node)["devices"]
    assert "taints" not in first and "taints" in second
    assert gpu_devices.with_failure(annotations, "gpu-1", None) is None


@pytest.mark.parametrize("text", ["", "[]", '{"gpu-0": 79}', '{"gpu-0": {"xid": "x"}}', "not JSON"])
def test_a_malformed_annotation_of_failures_is_ignored(text: str) -> None:
    assert gpu_devices.failures_of({gpu_devices.FAILED: text}) == {}


def test_a_slice_that_the_api_server_has_completed_is_not_written_again() -> None:
    """The API server writes 16384Mi as 16Gi, and adds a time to each taint."""
    node = devices_node()
    node["metadata"]["annotations"][gpu_devices.FAILED] = '{"gpu-0": {"xid": 79, "drain": false}}'
    desired, stored = slice_spec(node), slice_spec(node)
    assert stored["devices"][0]["capacity"]["memory"]["value"] == "16Gi"
    stored["devices"][0]["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z"
    assert gpu_devices.with_times(desired, stored) == stored
    desired["devices"][0]["taints"][0]["value"] = "48"
    assert "timeAdded" not in gpu_devices.with_times(desired, stored)["devices"][0]["taints"][0]


@pytest.mark.parametrize(
    ("form", "device", "message"),
    [
        ("devices", "gpu-7", "node tiny-0 has no device 'gpu-7'"),
        ("extended", "gpu-0", "node tiny-0 does not offer its GPUs as devices — add nodes with --gpus devices"),
    ],
)
def test_a_device_that_does_not_exist_cannot_fail(form: gpu_devices.Form, device: str, message: str) -> None:
    node = devices_node("tiny", form)
    with pytest.raises(UsageError, match=message):
        gpu_failures.require_device("tiny-0", node["metadata"]["annotations"], device, location="DEVICE")


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        (None, "ResourceClaim gpu does not exist"),
        (UNALLOCATED_CLAIM, "ResourceClaim gpu is not allocated"),
        (ALLOCATED_CLAIM, "ResourceClaim gpu is not reserved for the pod"),
        (RESERVED_CLAIM, ""),
    ],
)
def test_containers_start_once_the_claim_is_allocated_and_reserved(claim: Any, problem: str) -> None:
    parsed_claim = None if claim is None else msgspec.convert(claim, claims.Claim)
    assert claims.problem(pod({"resourceClaimName": "gpu"}), {"gpu": parsed_claim}) == problem


def test_a_claim_from_a_template_is_named_in_the_status() -> None:
    reference = {"resourceClaimTemplateName": "one"}
    assert claims.problem(pod(reference), {}) == "no ResourceClaim for gpu exists yet"
    pod_of_generated_claim = pod(reference, [{"name": "gpu", "resourceClaimName": "p-gpu-x"}])
    assert claims.problem(pod_of_generated_claim, {}) == "ResourceClaim p-gpu-x does not exist"
    assert claims.names(pod(reference, [{"name": "gpu"}])) == {}
