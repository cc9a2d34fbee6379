"""Tests of the conversion of a cluster's lists into a fleet file, and of the client that lists."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster import fleets, gpu_devices, nodes
from conformance.cluster.capture import fleet, lists
from conformance.cluster.capture.lists import Inventory, Lister
from conformance.errors import UsageError
from kube.client import Client
from kube.config import Connection
from kube.errors import ApiError
from kube.resource import NODES, Resource
from tests.cluster.device_nodes import slices
from tests.cluster.test_commands import run_in_process

SECRETS = ("prod-7", "10.3.4.5", "i-0abc", "acme", "8f3a2b11-0000-4444-8888-1234567890ab", "1654922006536", "us-moon-1")
UUID = "8f3a2b11-0000-4444-8888-1234567890ab"


def node(name: str, **fields: Any) -> dict[str, Any]:
    """Return a node as a real cluster has it, with things that must not be captured."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "gpu-big",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "topology.kubernetes.io/zone": "us-moon-1a",
        "kubernetes.io/rack": fields.get("rack", "acme-r9"),
        **fields.get("labels", {}),
    }
    capacity = {"cpu": "192", "memory": "2113413468Ki", "pods": "110", "nvidia.com/gpu": "8"}
    return {
        "metadata": {"name": name, "uid": UUID, "labels": labels, "annotations": {"acme.com/owner": "acme"}},
        "spec": {"providerID": f"cloud:///us-moon-1a/i-0abc{name}", "taints": fields.get("taints", [])},
        "status": {
            "capacity": capacity,
            "allocatable": {**capacity, "cpu": "190", "nvidia.com/gpu": fields.get("free", "8")},
            "addresses": [{"type": "InternalIP", "address": "10.3.4.5"}],
            "conditions": [{"type": "Ready", "status": fields.get("ready", "True")}],
        },
    }


def resource_slice(of_node: str, *devices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    pool = {"name": of_node, "generation": 1, "resourceSliceCount": 1, **fields.pop("pool", {})}
    spec = {"driver": "gpu.nvidia.com", "nodeName": of_node, "pool": pool, "devices": list(devices), **fields}
    return {"metadata": {"name": f"{of_node}-{pool['generation']}-x7k2p"}, "spec": spec}


def device(index: int, uuid: str, **attributes: dict[str, Any]) -> dict[str, Any]:
    all_attributes = {"uuid": {"string": f"GPU-{uuid}"}, "type": {"string": "gpu"}, **attributes}
    return {"name": f"gpu-{index}", "attributes": all_attributes, "capacity": {"memory": {"value": "80Gi"}}}


def parts(captured: fleet.FleetFile) -> list[tuple[str, int, str]]:
    return [
        (part["profile"], part["nodes"], part["labels"].get("kubernetes.io/rack", ""))
        for part in captured.document["parts"]
    ]


def test_equal_nodes_are_counted_by_place() -> None:
    names_and_racks = [("prod-71", "acme-r10"), ("prod-72", "acme-r9"), ("prod-73", "acme-r10"), ("prod-74", "acme-r9")]
    listed = [node(name, rack=rack) for name, rack in names_and_racks] + [node("prod-75", free="7")]
    captured = fleet.capture(Inventory(listed))
    h100 = "nvidia-h100-80gb-hbm3"
    assert parts(captured) == [(h100, 1, "rack-0"), (f"{h100}-v2", 2, "rack-0"), (f"{h100}-v2", 2, "rack-1")]
    assert captured.document["profiles"][h100]["allocatable"] == {"cpu": "190", "nvidia.com/gpu": "7"}
    assert captured.losses == []


def test_nothing_that_identifies_a_cluster_is_in_the_file() -> None:
    taints = [taint("acme.com/team", "acme"), taint("acme.com/job", f"acme-{UUID}"), taint("acme.com/run", UUID)]
    other = node("prod-72.acme.example", labels={"acme.com/team": "acme"}, taints=taints)
    listed = [node("prod-71", labels={"acme.com/team": "acme"}, taints=taints), other]
    identifying = {
        "serialNumber": {"string": "SN-acme"},
        "chip": {"string": "1654922006536"},
        "ip": {"string": "10.3.4.5"},
    }
    slices = [
        resource_slice(
            "prod-71",
            device(0, UUID, host={"string": f"prod-71.acme/{UUID}"}, peer={"string": "to prod-72"}, **identifying),
        )
    ]
    captured = fleet.capture(Inventory(listed, slices))
    text = captured.text().replace("acme.com/", "")  # keys of taints are kept: pods tolerate them
    assert not [secret for secret in SECRETS if secret in text]
    assert "prod-7" not in " ".join(captured.losses)
    assert captured.losses == [
        "not kept: labels acme.com/… (2 nodes)",
        *(
            f"the attribute {name} of devices has made-up values (1 node)"
            for name in ("chip", "host", "ip", "peer", "serialNumber")
        ),
        *(f"the taint acme.com/{name} has another value (2 nodes)" for name in ("job", "run", "team")),
    ]


def test_the_name_of_a_node_can_be_an_address() -> None:
    attributes = {"peer": {"string": "at 10.9.8.7:99"}, "pciBusID": {"string": "0000:10:00.0"}}
    slices = [resource_slice("10.9.8.7", device(0, UUID, **attributes))]
    (profile,) = fleet.capture(Inventory([node("10.9.8.7")], slices)).document["profiles"].values()
    pool = profile["pools"][0]
    assert pool["attributes"]["pciBusID"] == {"string": "0000:10:00.0"}
    assert pool["attributes"]["peer"] == {"string": "<id-0>"}


def taint(key: str, value: str) -> dict[str, str]:
    return {"key": key, "value": value, "effect": "NoSchedule"}


def test_a_label_is_kept_on_request_with_other_values() -> None:
    listed = [node("prod-71", labels={"acme.com/row": "acme-1"}), node("prod-72", labels={"acme.com/row": "acme-2"})]
    captured = fleet.capture(Inventory(listed), ["acme.com/row"])
    assert [part["labels"]["acme.com/row"] for part in captured.document["parts"]] == ["row-0", "row-1"]
    assert not captured.losses


def test_states_of_nodes_are_lost_and_said() -> None:
    unready = [taint("node.kubernetes.io/not-ready", "")]
    cordoned = node("prod-73")
    cordoned["spec"]["unschedulable"] = True
    captured = fleet.capture(Inventory([node("prod-71", ready="False", taints=unready), node("prod-72"), cordoned]))
    assert captured.losses == [
        "not kept: cordoned, the nodes will be schedulable (1 node)",
        "not kept: not Ready, the nodes will be Ready (1 node)",
    ]
    assert len(captured.document["profiles"]) == 1


def test_identifiers_of_a_node_are_numbered_and_shared_ones_stay_equal() -> None:
    fabric = "11111111-2222-4333-8444-555555555555"
    slices = [
        resource_slice(
            name,
            device(0, uuid, fabric={"string": f"{fabric}.3"}),
            {"name": "gpu-0-mig-1g-0", "attributes": {"parentUUID": {"string": f"GPU-{uuid}"}}},
        )
        for name, uuid in (("prod-71", UUID), ("prod-72", UUID.replace("8f", "9f")))
    ]
    captured = fleet.capture(Inventory([node("prod-71"), node("prod-72")], slices))
    (profile,) = captured.document["profiles"].values()
    card, partition = profile["pools"][0]["devices"]
    assert card["attributes"]["uuid"] == partition["attributes"]["parentUUID"] == {"string": "GPU-<id-0>"}
    assert card["attributes"]["fabric"] == {"string": "00000000-0000-4000-8000-000000000000.3"}


def test_only_complete_pools_of_the_newest_generation_are_captured() -> None:
    slices = [
        resource_slice("prod-71", device(0, UUID), pool={"generation": 1}),
        resource_slice("prod-71", device(1, UUID), device(2, UUID), pool={"generation": 2}),
        resource_slice("prod-72", device(0, UUID), pool={"resourceSliceCount": 2}),
        resource_slice("net", device(0, UUID), nodeName=None, allNodes=True),
    ]
    captured = fleet.capture(Inventory([node("prod-71"), node("prod-72")], slices))
    without, complete = captured.document["profiles"].values()
    if "pools" in without:
        without, complete = complete, without
    assert "pools" not in without
    assert [entry["name"] for entry in complete["pools"][0]["devices"]] == ["gpu-1", "gpu-2"]
    assert captured.losses == [
        "left out: a pool of gpu.nvidia.com whose slices are not all there (1 node)",
        "left out: devices of gpu.nvidia.com that belong to no node (1 ResourceSlice)",
    ]


def test_classes_are_captured_without_configuration() -> None:
    selectors = [{"cel": {"expression": 'device.driver == "npu.example.com"'}}]
    classes = [
        {"metadata": {"name": "npu"}, "spec": {"selectors": selectors, "config": [{"opaque": {}}]}},
        {"metadata": {"name": "one"}, "spec": {"selectors": [{"cel": {"expression": f'"{UUID}" == ""'}}]}},
    ]
    captured = fleet.capture(Inventory([node("prod-71")], [], classes))
    assert captured.document["deviceClasses"] == [{"name": "npu", "selectors": ['device.driver == "npu.example.com"']}]
    assert captured.losses == [
        "left out: DeviceClasses whose selectors name a UUID (1 DeviceClass)",
        "not kept: config of DeviceClasses (1 DeviceClass)",
    ]


def test_a_cluster_without_nodes_for_a_fake_one_is_a_mistake() -> None:
    windows = node("prod-71", labels={"kubernetes.io/os": "windows"})
    for listed in ([], [windows]):
        with pytest.raises(UsageError, match="has no node that can be captured"):
            fleet.capture(Inventory(listed))


def started(file: Path) -> Inventory:
    """Return what a cluster lists that was started with a fleet file."""
    manifests = [
        manifest | {"status": {**manifest["status"], "conditions": []}}
        for manifest in fleets.requested_nodes(str(file))
    ]
    return Inventory(manifests, slices(*manifests), fleets.requested_classes(str(file)))


def test_a_fleet_that_was_started_from_a_capture_is_captured_as_the_same(tmp_path: Path) -> None:
    manifests = [
        *gpu_devices.offered(nodes.manifests("dgx-h100-mig", 5), "devices"),
        *gpu_devices.offered(nodes.manifests("gb200-nvl72", 20), "devices"),
        *nodes.manifests("dgx-h100", 12, pool="acme"),
        *nodes.manifests("cpu", 2),
    ]
    file = tmp_path / "fleet.yaml"
    first = fleet.capture(Inventory(manifests, slices(*manifests), list(gpu_devices.class_manifests())))
    file.write_text(first.text())
    second = fleet.capture(started(file))
    assert second.document == first.document and second.text() == file.read_text()
    (clique, other) = {part["labels"].get("nvidia.com/gpu.clique") for part in first.document["parts"]} - {None}
    assert clique != other


class Cluster:
    """A client that answers lists, and refuses some."""

    def __init__(self, status_by_resource: dict[str, int]) -> None:
        self.before_write: Any = None
        self._status_by_resource = status_by_resource

    async def list(self, resource: Resource) -> list[dict[str, Any]]:
        if status := self._status_by_resource.get(resource.plural):
            raise ApiError(status, "", f"{resource} cannot be listed", {}, None)
        return [node("prod-71")] if resource == NODES else []


def test_a_lister_can_only_list() -> None:
    cluster = Cluster({})
    lister = Lister(cluster)  # type: ignore[arg-type]
    assert [name for name in dir(lister) if not name.startswith("_")] == ["list"]
    with pytest.raises(AssertionError, match="only reads"):
        cluster.before_write()


def test_the_client_under_a_lister_sends_no_write() -> None:
    async def write() -> None:
        async with Client(Connection("http://127.0.0.1:9", None, lambda: None), user_agent="test") as client:
            Lister(client)
            await client.delete(NODES, None, "prod-71")

    with pytest.raises(AssertionError, match="only reads"):
        asyncio.run(write())


def test_a_cluster_that_serves_no_devices_is_captured_without_them() -> None:
    cluster: Any = Cluster({"resourceslices": 404, "deviceclasses": 404})
    inventory = asyncio.run(lists.read(Lister(cluster)))
    assert fleet.capture(inventory).losses == [
        "not served: deviceclasses.resource.k8s.io, so no devices are captured",
        "not served: resourceslices.resource.k8s.io, so no devices are captured",
    ]


@pytest.mark.parametrize("plural", ["nodes", "resourceslices", "deviceclasses"])
def test_a_refused_list_ends_the_capture(plural: str) -> None:
    cluster: Any = Cluster({plural: 403})
    with pytest.raises(ApiError):
        asyncio.run(lists.read(Lister(cluster)))


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: me, user: {}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
"""


@pytest.mark.parametrize(
    ("context", "message"), [("here", "the API server does not answer"), ("there", "has no context 'there'")]
)
def test_a_cluster_that_cannot_be_read_is_a_mistake_in_one_line(tmp_path: Path, context: str, message: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    completed = run_in_process("cluster", "capture", "--kubeconfig", str(file), "--context", context)
    assert completed.returncode == 4 and message in completed.stderr
    assert completed.stderr.count("\n") == 1 and not completed.stdout
