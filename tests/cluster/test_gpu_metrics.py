"""Tests of the metrics of GPUs: which series there are, whose they are, and where their values come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from conformance.cluster import fleets, gpu_counters, gpu_devices, gpu_occupancy, nodes
from conformance.cluster.addons import gpu_metrics
from conformance.cluster.addons.gpu_holders import GpuNumbers, simulated_gpus
from conformance.cluster.gpu_devices import DeviceFailure
from conformance.cluster.nodes import METRICS
from conformance.errors import UsageError
from tests.cluster.device_nodes import devices_node, slices

Series = dict[tuple[str, ...], float]
UTIL, USED, FREE, XID = gpu_counters.UTIL, gpu_counters.FB_USED, gpu_counters.FB_FREE, gpu_counters.XID
POWER, TEMPERATURE = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"


def ready(manifest: nodes.Manifest) -> nodes.Manifest:
    status = manifest["status"] | {"conditions": [{"type": "Ready", "status": "True"}]}
    return {**manifest, "status": status}


def pod(name: str, node: str, gpus: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a running pod that requests GPUs as an extended resource, or whose container `main` uses its claims."""
    claims = [{"name": reference["name"]} for reference in fields.get("claims", ())]
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    containers = [{"name": "sidecar"}, {"name": "main", "resources": {"claims": claims} | resources}]
    status = {
        "phase": "Running",
        "startTime": fields.get("started", "2026-01-01T00:00:00Z"),
        **fields.get("status", {}),
    }
    return {
        "metadata": {"name": name, "namespace": "n", "uid": name, "annotations": fields.get("annotations")},
        "spec": {"nodeName": node, "containers": containers, "resourceClaims": list(fields.get("claims", ()))},
        "status": status,
    }


def claim(name: str, node: str, *devices: str, pods: tuple[str, ...]) -> dict[str, Any]:
    results = [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": device} for device in devices]
    users = [{"resource": "pods", "name": user, "uid": user} for user in pods]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    return {"metadata": {"name": name, "namespace": "n"}, "status": status}


def page(
    manifests: list[nodes.Manifest], pods: list[Any], claims: list[Any] | None = None, numbers: GpuNumbers | None = None
) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Return the values that Prometheus's parser finds, by metric and labels."""
    listed = [ready(manifest) for manifest in manifests]
    gpus = simulated_gpus(listed, pods, slices(*manifests), claims or [], numbers or GpuNumbers())
    families = text_string_to_metric_families(gpu_metrics.page(gpus).decode())
    return {
        family.name: {frozenset(sample.labels.items()): sample.value for sample in family.samples}
        for family in families
    }


def by_gpu(values: dict[frozenset[tuple[str, str]], float]) -> dict[str, tuple[str, float]]:
    """Map the numbers of GPUs to the pod and the value of their series."""
    series = [(dict(labels), value) for labels, value in values.items()]
    return {labels["gpu"]: (labels.get("pod", ""), value) for labels, value in series}


def test_a_claim_attributes_its_devices_to_containers() -> None:
    trainer = pod("trainer", "dgx-h100-0", claims=[{"name": "gpus", "resourceClaimName": "two"}])
    metrics = page(
        [devices_node("dgx-h100")], [trainer], [claim("two", "dgx-h100-0", "gpu-3", "gpu-5", pods=("trainer",))]
    )
    assert set(metrics) == {UTIL, USED, FREE, XID}, "what is not declared has no series"
    utilization = by_gpu(metrics[UTIL])
    assert utilization == {str(i): ("trainer", 50.0) if i in (3, 5) else ("", 0.0) for i in range(8)}
    labels = next(dict(key) for key in metrics[UTIL] if ("gpu", "3") in key)
    (card,) = (
        device
        for item in slices(devices_node("dgx-h100"))
        for device in item["spec"]["devices"]
        if device["name"] == "gpu-3"
    )
    assert labels == {
        "gpu": "3",
        "UUID": card["attributes"]["uuid"]["string"],
        "device": "nvidia3",
        "modelName": "NVIDIA-H100-80GB-HBM3",
        "Hostname": "dgx-h100-0",
        "namespace": "n",
        "pod": "trainer",
        "container": "main",
    }
    idle_labels = next(dict(key) for key in metrics[UTIL] if ("gpu", "0") in key)
    assert not {"pod", "namespace", "container"} & idle_labels.keys()


def test_containers_of_a_pod_hold_the_devices_of_their_own_claims_and_requests() -> None:
    """`one` is used as a whole by the container a, and of `two`, each container uses one request."""
    references = [{"name": name, "resourceClaimName": name} for name in ("one", "two")]
    user = pod("user", "dgx-h100-0", claims=references)
    user["spec"]["containers"] = [
        {"name": "a", "resources": {"claims": [{"name": "one"}, {"name": "two", "request": "large"}]}},
        {"name": "b", "resources": {"claims": [{"name": "two", "request": "small"}]}},
    ]
    one, two = (
        claim("one", "dgx-h100-0", "gpu-0", pods=("user",)),
        claim("two", "dgx-h100-0", "gpu-1", "gpu-2", pods=("user",)),
    )
    large, small = two["status"]["allocation"]["devices"]["results"]
    large["request"], small["request"] = "large/first-choice", "small"
    metrics = page([devices_node("dgx-h100")], [user], [one, two])
    labels = [dict(key) for key in metrics[UTIL]]
    containers = sorted((entry["gpu"], entry["container"]) for entry in labels if "container" in entry)
    assert containers == [("0", "a"), ("1", "a"), ("2", "b")]


def test_used_and_free_memory_add_up() -> None:
    declared = json.dumps({USED: 1000, UTIL: 3})
    notebook = pod("notebook", "dgx-h100-0", 1, annotations={METRICS: declared})
    metrics = page(nodes.manifests("dgx-h100", 1), [notebook])
    assert by_gpu(metrics[USED])["0"] == ("notebook", 1000.0) and by_gpu(metrics[FREE])["0"] == ("notebook", 80559.0)
    assert by_gpu(metrics[USED])["1"] == ("", 0.0) and by_gpu(metrics[FREE])["1"] == ("", 81559.0)
    assert by_gpu(metrics[UTIL])["0"] == ("notebook", 3.0)


def test_a_profile_declares_for_all_gpus_and_a_pod_for_its_own(tmp_path: Path) -> None:
    file = tmp_path / "warm.yaml"
    file.write_text(
        "description: A.\narchitecture: amd64\ncapacity: {cpu: '8', memory: 8Gi, pods: '9', nvidia.com/gpu: '2'}\n"
        f"gpuMetrics: {{{TEMPERATURE}: 31, {POWER}: 70.5}}\n"
    )
    (manifest,) = fleets.requested_nodes(str(file))
    hot = pod("hot", "warm-0", 1, annotations={METRICS: json.dumps({POWER: 650, "unknown": 1})})
    metrics = page([manifest], [hot])
    assert by_gpu(metrics[POWER]) == {"0": ("hot", 650.0), "1": ("", 70.5)}
    assert by_gpu(metrics[TEMPERATURE]) == {"0": ("hot", 31.0), "1": ("", 31.0)}
    file.write_text(file.read_text().replace(POWER, "DCGM_FI_DEV_POWER_USED"))
    with pytest.raises(UsageError, match="did you mean"):
        fleets.requested_nodes(str(file))


@pytest.mark.parametrize("text", ["", "[]", '{"DCGM_FI_DEV_GPU_UTIL": "much"}'])
def test_a_malformed_declaration_declares_nothing(text: str) -> None:
    assert gpu_metrics.declared({METRICS: text}) == {}
    assert gpu_metrics.declared({METRICS: '{"unknown": 1, "DCGM_FI_DEV_GPU_UTIL": 2}'}) == {UTIL: 2.0}


def test_a_device_that_has_failed_has_its_error() -> None:
    manifest = devices_node("tiny")
    annotations = manifest["metadata"]["annotations"]
    annotations[gpu_devices.FAILED] = gpu_devices.with_failure(annotations, "gpu-1", DeviceFailure(48))
    assert by_gpu(page([manifest], [])[XID]) == {"0": ("", 0.0), "1": ("", 48.0)}


def test_pods_keep_the_numbers_of_their_gpus_and_leave_those_that_are_taken() -> None:
    manifests = gpu_occupancy.with_occupancy(nodes.manifests("dgx-h100", 1), "2/8")
    first, second = pod("first", "dgx-h100-0", 2), pod("second", "dgx-h100-0", 3, started="2026-01-01T00:00:05Z")
    numbers = GpuNumbers()

    def pods_by_gpu(*pods: Any) -> str:
        series = by_gpu(page(manifests, list(pods), numbers=numbers)[UTIL])
        return " ".join(series[str(number)][0] or "-" for number in range(8))

    assert pods_by_gpu(second, first) == "- - first first second second second -"
    third = pod("third", "dgx-h100-0", 3, started="2026-01-01T00:00:09Z")
    assert pods_by_gpu(second, third) == "- - third third second second second third"
    assert pods_by_gpu() == "- - - - - - - -"


def test_partitions_have_the_number_of_their_card() -> None:
    manifest = devices_node("dgx-h100-mig")
    user = pod("user", "dgx-h100-mig-0", claims=[{"name": "part", "resourceClaimTemplateName": "t"}])
    user["status"]["resourceClaimStatuses"] = [{"name": "part", "resourceClaimName": "user-part-x"}]
    part = claim("user-part-x", "dgx-h100-mig-0", "gpu-2-mig-3g40gb-4", pods=("user",))
    metrics = page([manifest], [user], [part])
    (labels,) = (dict(key) for key in metrics[USED] if ("pod", "user") in key)
    assert (labels["gpu"], labels["GPU_I_PROFILE"], labels["GPU_I_ID"]) == ("2", "3g.40gb", "4")
    assert [dict(key)["UUID"] for key in metrics[UTIL] if ("gpu", "2") in key] == [labels["UUID"]]
    assert len(metrics[USED]) == 9 and len(metrics[UTIL]) == 8, "eight cards, and the partition that is used"


def test_a_claim_for_an_extended_resource_names_the_container() -> None:
    mappings = [{"containerName": "main", "requestName": "gpu"}, {"containerName": "sidecar", "requestName": "other"}]
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "special", "requestMappings": mappings}}
    user = pod("user", "tiny-0", 1, status=status)
    metrics = page([devices_node("tiny")], [user], [claim("special", "tiny-0", "gpu-1", pods=("user",))])
    assert [dict(key).get("container") for key in metrics[UTIL] if ("pod", "user") in key] == ["main"]
    assert by_gpu(metrics[UTIL]) == {"0": ("", 0.0), "1": ("user", 50.0)}


def test_only_running_pods_and_nodes_with_a_kubelet_have_metrics() -> None:
    waiting = pod("waiting", "tiny-0", 1, status={"phase": "Pending"})
    manifests = nodes.manifests("tiny", 2)
    assert by_gpu(page(manifests[:1], [waiting])[UTIL]) == {"0": ("", 0.0), "1": ("", 0.0)}
    lost = {**manifests[1], "spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}}
    assert page([lost], []) == {}


def test_all_counters_can_be_declared_and_only_those() -> None:
    everything = pod("all", "tiny-0", 1, annotations={METRICS: json.dumps(dict.fromkeys(gpu_counters.COUNTERS, 7))})
    metrics = page(nodes.manifests("tiny", 1), [everything])
    assert set(metrics) == set(gpu_counters.COUNTERS), "names as dcgm-exporter has them"
    assert {by_gpu(values)["0"] for values in metrics.values()} == {("all", 7.0)}
    gpus = simulated_gpus([ready(*nodes.manifests("tiny", 1))], [everything], [], [], GpuNumbers())
    assert b"COUNTER_total" not in gpu_metrics.page(gpus)
