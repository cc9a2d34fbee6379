"""A test on a real control plane: a cluster is captured, and started again from its capture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster.controlplane import Cluster
from conformance.cluster.gpu_devices import OCCUPIED
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.errors import UsageError
from conformance.grove_cluster import GroveCluster
from tests.cluster.test_commands import run_in_process

pytestmark = pytest.mark.cluster

OWN_PROFILE = """
description: A node with devices of another driver.
architecture: amd64
capacity: {cpu: "96", memory: 1024Gi, pods: "64", example.com/npu: "2"}
allocatable: {cpu: "90"}
labels: {node.kubernetes.io/instance-type: big-96, example.com/team: team-x, topology.kubernetes.io/region: moon}
taints: [{key: example.com/team, value: team-x, effect: NoSchedule}]
nodesPerRack: 2
racksPerBlock: 1
pools:
- driver: npu.example.com
  attributes: {model: {string: N1}, serial: {string: "1654922006536"}}
  devices: [{name: npu-0, taints: [{key: example.com/old, effect: NoSchedule}]}, {name: npu-1}]
"""
BROKEN_CLASS = """
description: A fleet whose selector does not compile.
deviceClasses: [{name: broken, selectors: ["device.driver =="]}]
parts: [{profile: tiny, nodes: 1}]
"""
BROKEN_DEVICE = """
description: A node whose device has no valid capacity.
architecture: amd64
capacity: {cpu: "1", memory: 1Gi, pods: "1"}
pools: [{driver: npu.example.com, devices: [{name: npu-0, capacity: {memory: {value: much}}}]}]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroveCluster]:
    state = StateRoot(tmp_path_factory.mktemp("state") / "root")
    with GroveCluster(Cluster.up("capture", settings=ClusterSettings(addons=True), state=state)) as cluster:
        yield cluster


def listed(cluster: GroveCluster, kind: str) -> list[Any]:
    from kubernetes.client import CustomObjectsApi

    return CustomObjectsApi(cluster.client).list_cluster_custom_object("resource.k8s.io", "v1", kind)["items"]  # type: ignore[no-any-return]


def versions(cluster: GroveCluster) -> dict[str, str]:
    """Map the objects that a capture reads to their resource versions."""
    from kubernetes.client import CoreV1Api

    items = [item["metadata"] for kind in ("resourceslices", "deviceclasses") for item in listed(cluster, kind)]
    nodes = CoreV1Api(cluster.client).list_node().items
    return {item["uid"]: item["resourceVersion"] for item in items} | {
        node.metadata.uid: node.metadata.resource_version for node in nodes
    }


def capture(cluster: GroveCluster, file: Path) -> str:
    completed = run_in_process("cluster", "capture", "--kubeconfig", str(cluster.kubeconfig))
    assert completed.returncode == 0, completed.stderr
    file.write_text(completed.stdout)
    return completed.stderr


def test_a_fleet_is_captured_and_started_again(cluster: GroveCluster, tmp_path: Path) -> None:
    """The first cluster has both forms of GPUs, partitions, a failed and a taken device, a driver of its own, racks and
    taints. The second one is started from its capture, and captured as the same."""
    profile, first, second = (tmp_path / f"{name}.yaml" for name in ("big", "first", "second"))
    profile.write_text(OWN_PROFILE)
    names = [*cluster.add_nodes("dgx-h100:2"), *cluster.add_nodes(f"{profile}:3")]
    for request in ("dgx-h100-mig:2", "gb200-nvl72:1rack", "tiny:3"):
        names += cluster.add_nodes(request, gpus="devices")
    cluster.fail_gpu("tiny-1", "gpu-1")
    occupy(cluster, "tiny-2")
    cluster.wait_for("all slices", lambda: len(listed(cluster, "resourceslices")) == 48)
    cluster.wait_for("a taken device", lambda: "occupied" in str(listed(cluster, "resourceslices")))
    before = versions(cluster)
    losses = capture(cluster, first)
    assert versions(cluster) == before
    assert losses.splitlines() == [
        "not kept: labels example.com/… (3 nodes)",
        "the attribute serial of devices has made-up values (3 nodes)",
        "the taint example.com/team has another value (3 nodes)",
    ]
    assert not [name for name in (*names, "team-x", "1654922006536", "moon") if name in first.read_text()]
    for part in ("xid", "occupied", "example.com/old", "sharedCounters", "rack-3", "nvidia.com/gpu: '8'", "region-0"):
        assert part in first.read_text(), part
    cluster.remove_nodes(names)
    cluster.wait_for("no slice", lambda: not listed(cluster, "resourceslices"))
    cluster.add_nodes(str(first))
    cluster.wait_for("all slices again", lambda: len(listed(cluster, "resourceslices")) == 48)
    capture(cluster, second)
    assert second.read_text() == first.read_text()


def occupy(cluster: GroveCluster, name: str) -> None:
    from kubernetes.client import CoreV1Api

    CoreV1Api(cluster.client).patch_node(name, {"metadata": {"annotations": {OCCUPIED: "1"}}})


@pytest.mark.parametrize(
    ("text", "message"),
    [(BROKEN_CLASS, "refuses a DeviceClass: .*compilation failed"), (BROKEN_DEVICE, "refuses devices of wrong-0: ")],
)
def test_an_object_that_the_api_server_refuses_is_a_mistake(
    cluster: GroveCluster, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        cluster.add_nodes(str(file))
    assert "\n" not in str(caught.value)
    assert "broken" not in [item["metadata"]["name"] for item in listed(cluster, "deviceclasses")]


def test_a_user_without_rights_captures_nothing(cluster: GroveCluster, tmp_path: Path) -> None:
    import yaml
    from kubernetes.client import CoreV1Api

    token = CoreV1Api(cluster.client).create_namespaced_service_account_token("default", "default", {"spec": {}})
    kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token.status.token}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig))
    completed = run_in_process("cluster", "capture", "--kubeconfig", str(file))
    assert (
        completed.returncode == 4 and "403 Forbidden" in completed.stderr and "ask for these rights" in completed.stderr
    )
    assert completed.stderr.count("\n") == 1 and not completed.stdout
