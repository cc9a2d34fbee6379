"""Tests of the samples about GPUs on a real control plane: how kube-scheduler and the controllers of Kubernetes treat a
fragmented fleet, a failure, partitions, and an idle Pod."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.grove import samples
from conformance.grove_cluster import GroveCluster
from conformance.testing import devices
from tests.cluster.test_commands import run_in_process

pytestmark = pytest.mark.cluster
UTIL = "DCGM_FI_DEV_GPU_UTIL"


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = StateRoot(tmp_path_factory.mktemp("state") / "root")
    cluster = Cluster.up("scenarios", settings=ClusterSettings(addons=True), state=state)
    yield cluster
    cluster.down()


@pytest.fixture(scope="module")
def cluster(control_plane: Cluster) -> GroveCluster:
    return GroveCluster(control_plane)


class Scenario:
    """A sample that was applied in a namespace of its own."""

    def __init__(self, cluster: GroveCluster, control_plane: Cluster, namespace: str) -> None:
        from kubernetes.client import AppsV1Api, CoreV1Api, CustomObjectsApi

        self.cluster, self.namespace, self._control_plane = cluster, namespace, control_plane
        self.core: Any = CoreV1Api(cluster.client)
        self.apps: Any = AppsV1Api(cluster.client)
        self._objects: Any = CustomObjectsApi(cluster.client)

    def start(self, name: str) -> None:
        """Add the nodes of a sample, and apply its manifests."""
        sample = samples.load()[name]
        for request in sample.nodes:
            self.cluster.add_nodes(request, gpus=sample.gpus)
        kubectl = [str(self._control_plane.kubectl), "--kubeconfig", str(self.cluster.kubeconfig), "-n", self.namespace]
        subprocess.run([*kubectl, "apply", "-f", str(samples.path(name))], check=True, capture_output=True)

    def wait_for_phase(self, prefix: str, phase: str) -> Any:
        """Return the only Pod with this prefix that is not being deleted, once it is in a phase."""
        return self.cluster.wait_for(f"{prefix} is {phase}", lambda: self._pod(prefix, phase))

    def _pod(self, prefix: str, phase: str) -> Any:
        pods = [
            pod for pod in self.core.list_namespaced_pod(self.namespace).items if pod.metadata.name.startswith(prefix)
        ]
        present = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        return present[0] if len(present) == 1 and present[0].status.phase == phase else None

    def wait_until_unschedulable(self, prefix: str, message: str) -> None:
        """Wait until kube-scheduler says why a Pod has no node."""

        def reasons() -> bool:
            pod = self._pod(prefix, "Pending")
            conditions = pod.status.conditions or [] if pod is not None else []
            return any(entry.reason == "Unschedulable" and message in entry.message for entry in conditions)

        self.cluster.wait_for(f"{prefix} is unschedulable: {message}", reasons)

    def allocated(self) -> list[tuple[str, str]]:
        """Return the pools and names of all allocated devices."""
        claims = self._objects.list_namespaced_custom_object("resource.k8s.io", "v1", self.namespace, "resourceclaims")
        return [(pool, device) for item in claims["items"] for _, pool, device in devices.allocated_devices(item)]

    def free_gpus(self) -> dict[str, int]:
        """Map the nodes to the number of their devices that are not tainted and not allocated."""
        slices = self._objects.list_cluster_custom_object("resource.k8s.io", "v1", "resourceslices")["items"]
        free: dict[str, int] = {}
        for spec in (item["spec"] for item in slices):
            names = {device["name"] for device in spec["devices"] if not device.get("taints")}
            free[spec["nodeName"]] = len({(spec["nodeName"], name) for name in names} - {*self.allocated()})
        return free

    def _metrics_url(self) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GROVE_CONFORMANCE_STATE", str(self._control_plane.directory.parents[1]))
            completed = run_in_process("cluster", "status", self._control_plane.name)
        (line,) = (line for line in completed.stdout.splitlines() if line.startswith("GPU metrics"))
        return line.split()[-1]

    def metrics(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Return what Prometheus finds: labels and values by metric."""
        with urllib.request.urlopen(self._metrics_url(), timeout=10) as response:
            families = text_string_to_metric_families(response.read().decode())
            return {family.name: [(sample.labels, sample.value) for sample in family.samples] for family in families}


@pytest.fixture
def scenario(cluster: GroveCluster, control_plane: Cluster) -> Iterator[Scenario]:
    with cluster.namespace() as namespace:
        scenario = Scenario(cluster, control_plane, namespace)
        yield scenario
        scenario.apps.delete_collection_namespaced_deployment(namespace)
        scenario.core.delete_collection_namespaced_pod(namespace, grace_period_seconds=0)
        cluster.wait_for("no device is allocated", lambda: not scenario.allocated())
        cluster.discard(cluster.added_nodes)


def test_free_gpus_on_several_nodes_do_not_serve_one_pod(scenario: Scenario) -> None:
    scenario.start("fragmented-fleet")
    scenario.wait_until_unschedulable("finetuning", "cannot allocate all claims")
    assert sorted(scenario.free_gpus().values()) == [1, 2, 2, 2]
    (node,) = scenario.cluster.add_nodes("dgx-h100:1", gpus="devices")
    assert scenario.wait_for_phase("finetuning", "Running").spec.node_name == node
    assert len(scenario.allocated()) == 4 and {pool for pool, _ in scenario.allocated()} == {node}


def test_a_pod_leaves_the_gpu_that_fails_and_gets_another_one(scenario: Scenario) -> None:
    scenario.start("gpu-failure")
    first = scenario.wait_for_phase("trainer", "Running")
    ((node, device),) = scenario.allocated()
    assert (node, device) == ("tiny-0", "gpu-0"), "as the document says"
    scenario.cluster.fail_gpu(node, device, xid=79, drain=True)
    scenario.cluster.wait_for("another Pod", lambda: is_another(scenario, first))
    ((other_node, other_device),) = scenario.cluster.wait_for("one device", lambda: only(scenario.allocated()))
    assert (other_node, other_device) == (node, "gpu-1")
    errors = {
        (labels["Hostname"], labels["gpu"]): value for labels, value in scenario.metrics()["DCGM_FI_DEV_XID_ERRORS"]
    }
    assert errors.pop((node, device.removeprefix("gpu-"))) == 79 and set(errors.values()) == {0}
    free_before = sum(scenario.free_gpus().values())
    scenario.cluster.repair_gpu(node, device)
    assert sum(scenario.free_gpus().values()) == free_before + 1


def is_another(scenario: Scenario, first: Any) -> bool:
    pods = scenario.core.list_namespaced_pod(scenario.namespace).items
    return [pod.status.phase for pod in pods if pod.metadata.uid != first.metadata.uid] == ["Running"] and len(
        pods
    ) == 1


def only(allocated: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return allocated if len(allocated) == 1 else []


def test_a_partition_waits_for_a_card_that_is_not_used_as_a_whole(scenario: Scenario) -> None:
    scenario.start("mig-exclusivity")
    scenario.wait_for_phase("whole-cards", "Running")
    scenario.apps.patch_namespaced_deployment_scale("partition", scenario.namespace, {"spec": {"replicas": 1}})
    scenario.wait_until_unschedulable("partition", "cannot allocate all claims")
    scenario.core.delete_namespaced_pod("whole-cards", scenario.namespace)
    scenario.wait_for_phase("partition", "Running")
    ((_, device),) = scenario.cluster.wait_for("one device", lambda: only(scenario.allocated()))
    assert "-mig-1g10gb-" in device
    used = [labels for labels, _ in scenario.metrics()["DCGM_FI_DEV_FB_USED"] if "pod" in labels]
    assert [labels["GPU_I_PROFILE"] for labels in used] == ["1g.10gb"]


def test_metrics_tell_an_idle_pod_from_a_busy_one(scenario: Scenario) -> None:
    scenario.start("idle-reclamation")
    for name in ("trainer", "notebook"):
        scenario.wait_for_phase(name, "Running")
    assert utilization(scenario) == {"trainer": 92, "notebook": 3}
    assert not {"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"} & scenario.metrics().keys()
    annotations = {"conformance.grove.io/gpu-metrics": '{"DCGM_FI_DEV_GPU_UTIL": 80, "DCGM_FI_DEV_POWER_USAGE": 300}'}
    scenario.core.patch_namespaced_pod("notebook", scenario.namespace, {"metadata": {"annotations": annotations}})
    assert utilization(scenario) == {"trainer": 92, "notebook": 80}
    assert [value for _, value in scenario.metrics()["DCGM_FI_DEV_POWER_USAGE"]] == [300]
    scenario.core.delete_namespaced_pod("notebook", scenario.namespace, grace_period_seconds=0)
    scenario.cluster.wait_for("the GPU is reclaimed", lambda: utilization(scenario) == {"trainer": 92})


def utilization(scenario: Scenario) -> dict[str, float]:
    """Map the Pods of the scenario to the utilization of their GPUs."""
    return {
        labels["pod"]: value
        for labels, value in scenario.metrics()[UTIL]
        if labels.get("namespace") == scenario.namespace
    }


def test_pods_hold_gpus_by_number_where_they_are_an_extended_resource(scenario: Scenario) -> None:
    (node,) = scenario.cluster.add_nodes("tiny:1")
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "image", "resources": resources}
    scenario.core.create_namespaced_pod(
        scenario.namespace, {"metadata": {"name": "server"}, "spec": {"containers": [container]}}
    )
    assert scenario.wait_for_phase("server", "Running").spec.node_name == node
    series = [(labels["gpu"], labels.get("container"), value) for labels, value in scenario.metrics()[UTIL]]
    assert series == [("0", "main", 50), ("1", None, 0)] and not scenario.allocated()
