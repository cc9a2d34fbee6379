"""Tests of nodes whose GPUs are devices, and of the rules by which pods wait for their claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster import gpu_devices, nodes
from conformance.cluster.kubelet_sim import claims
from conformance.cluster.kubelet_sim.init_wait import SimulatedPod

UNALLOCATED_CLAIM = {"metadata": {"name": "gpu", "namespace": "ns"}}
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
    (node,) = gpu_devices.offered(nodes.manifests("dgx-h100", 1), "devices")
    assert "nvidia.com/gpu" not in node["status"]["capacity"] | node["status"]["allocatable"]
    gpus = gpu_devices.gpus_of(node["metadata"]["annotations"])
    assert gpus is not None and (gpus.count, gpus.product) == (8, "NVIDIA-H100-80GB-HBM3")
    (extended_node,) = gpu_devices.offered(nodes.manifests("dgx-h100", 1), "extended")
    assert (
        extended_node == nodes.manifests("dgx-h100", 1)[0]
        and gpu_devices.gpus_of(extended_node["metadata"]["annotations"]) is None
    )


def test_a_node_without_gpus_has_no_devices() -> None:
    assert gpu_devices.offered(nodes.manifests("cpu", 1), "devices") == nodes.manifests("cpu", 1)


def test_a_slice_has_the_devices_that_the_driver_publishes() -> None:
    (node,) = gpu_devices.offered(nodes.manifests("gb200-nvl72", 1), "devices")
    gpus = gpu_devices.gpus_of(node["metadata"]["annotations"])
    assert gpus is not None
    resource_slice = gpu_devices.slice_manifest("gb200-nvl72-0", "uid", gpus)
    assert resource_slice["spec"]["pool"] == {"name": "gb200-nvl72-0", "generation": 1, "resourceSliceCount": 1}
    devices = resource_slice["spec"]["devices"]
    assert [device["name"] for device in devices] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    attributes = devices[0]["attributes"]
    assert attributes["architecture"] == {"string": "Blackwell"}
    assert attributes["cudaComputeCapability"] == {"version": "10.0.0"}
    assert devices[0]["capacity"] == {"memory": {"value": "189471Mi"}}
    for name in ("uuid", "resource.kubernetes.io/pciBusID"):
        assert len({device["attributes"][name]["string"] for device in devices}) == 4


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"count": 1}', "not JSON"])
def test_a_malformed_annotation_publishes_nothing(text: str) -> None:
    assert gpu_devices.gpus_of({gpu_devices.DEVICES: text}) is None


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
