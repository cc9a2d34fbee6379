"""Tests of the usage summary: the resources of nodes, and the requests and states of pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster import compute_domains, gpu_devices, nodes
from conformance.cluster.nodes import GPU
from conformance.cluster.usage import pod_state, usage
from kube.objects import ObjectMeta

READY_CONDITIONS = [{"type": "Ready", "status": "True"}]


def ready_nodes(manifests: list[nodes.Manifest]) -> list[nodes.Manifest]:
    return [{**node, "status": {**node["status"], "conditions": READY_CONDITIONS}} for node in manifests]


def pod(node: str = "", status: dict[str, Any] | None = None, **metadata: str) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "500m", GPU: "2"}}}
    spec = {"containers": [container]} | ({"nodeName": node} if node else {})
    return {"metadata": metadata, "spec": spec, "status": status or {"phase": "Pending"}}


def waiting_status(reason: str) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": reason}}}]}


def test_nodes_are_counted_by_profile_and_only_requests_of_bound_pods_count() -> None:
    manifests = [*ready_nodes(nodes.manifests("tiny", 2)), *nodes.manifests("dgx-h100", 1)]
    running_status = {"phase": "Running", "conditions": READY_CONDITIONS}
    pods = [pod("tiny-0", running_status), pod("tiny-1", running_status), pod(), pod("tiny-1", {"phase": "Succeeded"})]
    result = usage(manifests, pods)
    assert [(group.profile, group.nodes, group.ready, group.pods) for group in result.groups] == [
        ("dgx-h100", 1, 0, 0),
        ("tiny", 2, 2, 2),
    ]
    assert result.nodes == (2, 3)
    gpus = result.amount(GPU)
    assert (gpus.requested, gpus.allocatable) == (4, 12)
    assert result.groups[1].amounts["cpu"].requested == 1
    assert result.pods == {"Ready": 2, "Pending": 1, "Succeeded": 1}


def test_devices_are_counted_by_profile() -> None:
    manifests = gpu_devices.offered([*nodes.manifests("tiny", 2), *nodes.manifests("dgx-h100-mig", 1)], "devices")
    slices = [
        resource_slice
        for manifest in manifests
        for resource_slice in gpu_devices.slice_manifests(
            manifest["metadata"]["name"], "uid", manifest["metadata"]["annotations"]
        )
    ]
    (rack,) = gpu_devices.offered(nodes.manifests("gb200-nvl72", 1), "devices")
    slices += compute_domains.slice_manifests(msgspec.convert(rack["metadata"], ObjectMeta))
    manifests.append(rack)
    claims = [claim("tiny-1", "gpu-0"), claim("dgx-h100-mig-0", "gpu-0-mig-1g10gb-0"), claim("tiny-7", "gpu-0"), {}]
    result = usage(manifests, [pod("tiny-1", {"phase": "Running"})], slices, claims)
    assert [(group.profile, group.allocated_devices, group.devices) for group in result.groups] == [
        ("dgx-h100-mig", 1, 112),
        ("gb200-nvl72", 0, 0),
        ("tiny", 1, 4),
    ]
    assert result.devices == (2, 116)
    assert result.amount(GPU).requested == 0  # devices meet the request of the pod


def claim(pool: str, device: str) -> dict[str, Any]:
    result = {"driver": gpu_devices.DRIVER, "pool": pool, "device": device}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


def test_an_empty_cluster_has_no_usage() -> None:
    result = usage([], [])
    assert (result.groups, result.pods, result.nodes, result.amount(GPU).allocatable) == ([], {}, (0, 0), 0)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "Pending"),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            },
            "Unschedulable",
        ),
        (waiting_status("CrashLoopBackOff"), "CrashLoopBackOff"),
        ({"phase": "Running"}, "NotReady"),
        ({"phase": "Running", "conditions": READY_CONDITIONS}, "Ready"),
        ({"phase": "Failed"}, "Failed"),
    ],
)
def test_the_state_of_a_pod_is_the_reason_why_it_is_not_ready(status: dict[str, Any], state: str) -> None:
    assert pod_state(pod("", status)) == state
    assert pod_state(pod("", status, deletionTimestamp="2026-11-27T15:00:00Z")) == "Terminating"
