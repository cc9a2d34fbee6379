"""Tests of nodes some of whose GPUs are taken."""

from __future__ import annotations

import pytest

from conformance.cluster import gpu_devices, nodes
from conformance.cluster.gpu_occupancy import with_occupancy
from conformance.errors import UsageError
from tests.cluster.device_nodes import devices_node


def test_fewer_gpus_of_a_node_are_allocatable() -> None:
    with_gpus, without_gpus = with_occupancy([*nodes.manifests("dgx-h100", 1), *nodes.manifests("cpu", 1)], "2/8")
    assert with_gpus["status"]["allocatable"]["nvidia.com/gpu"] == "6"
    assert with_gpus["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert without_gpus == nodes.manifests("cpu", 1)[0]
    assert with_occupancy([with_gpus], "") == [with_gpus]


@pytest.mark.parametrize(("profile", "devices_per_card"), [("dgx-h100", 1), ("dgx-h100-mig", 14)])
def test_devices_that_are_taken_have_a_taint(profile: str, devices_per_card: int) -> None:
    (node,) = with_occupancy([devices_node(profile)], "2/8")
    annotations = node["metadata"]["annotations"]
    taints = {name: entries for name, entries in gpu_devices.device_taints(annotations).items() if entries}
    assert {name.partition("-mig-")[0] for name in taints} == {"gpu-0", "gpu-1"}
    assert len(taints) == 2 * devices_per_card
    assert taints["gpu-1"] == [{"key": "conformance.grove.io/occupied", "effect": "NoSchedule"}]
    annotations[gpu_devices.FAILED] = '{"gpu-1": {"xid": 79, "drain": true}}'
    keys = [taint["key"] for taint in gpu_devices.device_taints(annotations)["gpu-1"]]
    assert keys == ["conformance.grove.io/occupied", "conformance.grove.io/xid"]


@pytest.mark.parametrize("form", ["extended", "devices"])
@pytest.mark.parametrize(
    ("share", "message"),
    [
        ("2", "--occupied: '2' is not a share of the GPUs of a node — for example 2/8"),
        ("9/8", "--occupied: '9/8' is not a share"),
        ("0/0", "--occupied: '0/0' is not a share"),
        ("-1/8", "--occupied: '-1/8' is not a share"),
        ("1/4", "--occupied: node dgx-h100-0 has 8 GPUs, not 4 — write …/8"),
    ],
)
def test_a_share_that_no_node_can_have_is_a_mistake(form: gpu_devices.Form, share: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_occupancy([devices_node("dgx-h100", form)], share)
    assert str(caught.value).startswith(message)


def test_nodes_without_gpus_have_nothing_to_take() -> None:
    with pytest.raises(UsageError, match="--occupied: no node has GPUs"):
        with_occupancy(nodes.manifests("cpu", 1), "1/8")
