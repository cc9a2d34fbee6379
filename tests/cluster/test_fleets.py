"""Tests of the nodes that a command line requests: nodes of a profile, and fleets of several profiles."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance.cluster import fleets, gpu_devices, nodes
from conformance.cluster.gpu_occupancy import with_occupancy
from conformance.cluster.nodes import Keys
from conformance.errors import UsageError

CLIQUE = "nvidia.com/gpu.clique"


def count_gpus(manifests: list[nodes.Manifest]) -> int:
    return sum(int(node["status"]["allocatable"].get("nvidia.com/gpu", "0")) for node in manifests)


def count_labels(manifests: list[nodes.Manifest], key: str) -> Counter[str]:
    return Counter(node["metadata"]["labels"].get(key, "") for node in manifests)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("tiny", 1),
        ("tiny:10", 10),
        ("gb200-nvl72:2racks", 36),
        ("dgx-h100:1rack", 4),
        ("tiny:1block", 4),
        ("mixed", 32),
    ],
)
def test_requests_may_name_nodes_racks_blocks_and_fleets(text: str, count: int) -> None:
    manifests = fleets.requested_nodes(text)
    assert len(manifests) == count and len({node["metadata"]["name"] for node in manifests}) == count


@pytest.mark.parametrize("text", ["tiny:0", "tiny:two", "tinny:3", "tiny:2rocks", "mixed:3", "cpu:1rack", "", ":3"])
def test_invalid_requests_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        fleets.requested_nodes(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["tiny:99999999", "tiny:10001", "gb200-nvl72:9999racks", "tiny:" + "9" * 5000])
def test_more_nodes_than_a_cluster_can_have_are_refused_at_once(text: str) -> None:
    with pytest.raises(UsageError, match="asks for more than 10,000 nodes"):
        fleets.requested_nodes(text)


PROFILE = """
description: A node of the user's own.
architecture: arm64
capacity: {cpu: "4", memory: 8Gi, pods: "20", example.com/npu: "2", ephemeral-storage: 10Gi}
labels: {example.com/zone: a}
taints: [{key: example.com/npu, effect: NoSchedule}]
nodesPerRack: 2
racksPerBlock: 1
"""


def test_a_file_of_the_user_can_be_a_profile(tmp_path: Path) -> None:
    file = tmp_path / "npu.yaml"
    file.write_text(PROFILE)
    first_node, *_ = manifests = fleets.requested_nodes(f"{file}:2racks", pool="p")
    assert [node["metadata"]["name"] for node in manifests] == [f"p-npu-{index}" for index in range(4)]
    assert first_node["metadata"]["labels"]["example.com/zone"] == "a" and len(count_labels(manifests, nodes.RACK)) == 2
    assert first_node["status"]["capacity"]["example.com/npu"] == "2"
    assert first_node["status"]["allocatable"]["ephemeral-storage"] == "10Gi"
    assert [taint["key"] for taint in first_node["spec"]["taints"]] == ["example.com/npu", nodes.POOL]
    assert len(fleets.requested_nodes(str(file))) == 1


@pytest.mark.parametrize(
    ("name", "message"), [("nothing.yaml", "no such file"), ("My_Nodes.yaml", "not a valid name for nodes")]
)
def test_an_invalid_profile_file_is_refused_in_one_line(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "My_Nodes.yaml").write_text(PROFILE)
    with pytest.raises(UsageError, match=message):
        fleets.requested_nodes(f"{tmp_path / name}:2")


def test_each_rack_of_gb200_is_an_nvlink_domain_of_72_gpus() -> None:
    manifests = fleets.requested_nodes("gb200-nvl72:2racks")
    assert count_gpus(manifests) == 144 and set(count_labels(manifests, CLIQUE).values()) == {18}
    assert (
        count_labels(manifests, CLIQUE).keys() != count_labels(manifests, nodes.RACK).keys()
        and len(count_labels(manifests, nodes.RACK)) == 2
    )
    assert sum(int(node["status"]["capacity"]["cpu"]) for node in manifests[:18]) == 2592  # TP-30


def test_the_mixed_fleet_has_the_figures_of_the_fleet_model() -> None:
    manifests = fleets.requested_nodes("mixed", pool="p")
    assert count_gpus(manifests) == 152 and manifests == fleets.requested_nodes("mixed", pool="p")
    assert count_labels(manifests, nodes.BLOCK) == {"p-mixed-block-0": 8, "p-mixed-block-1": 20, "": 4}
    assert sorted(count_labels(manifests, nodes.RACK).values()) == [2, 4, 4, 4, 18]  # 4 nodes have no rack
    assert len(count_labels(manifests, nodes.ZONE)) == 1
    racks_with_blocks = {
        (node["metadata"]["labels"].get(nodes.RACK), node["metadata"]["labels"].get(nodes.BLOCK)) for node in manifests
    }
    assert len(racks_with_blocks) == len(count_labels(manifests, nodes.RACK))  # TP-09: a rack is in one block


def test_gpus_of_a_fleet_can_be_taken(tmp_path: Path) -> None:
    for form in ("extended", "devices"):
        manifests = with_occupancy(gpu_devices.offered(fleets.requested_nodes("fragmented"), form), "")  # type: ignore[arg-type]
        free = [count_gpus([node]) or _untainted_devices(node) for node in manifests]
        assert free == [2, 2, 2, 1], form
    file = tmp_path / "mine.yaml"
    file.write_text("description: A.\nparts: [{profile: tiny, nodes: 1, occupied: 3}]\n")
    with pytest.raises(UsageError, match="3 GPUs of node mine-tiny-0 are taken, which has 2 — correct occupied"):
        with_occupancy(fleets.requested_nodes(str(file)), "")


def _untainted_devices(node: nodes.Manifest) -> int:
    return list(gpu_devices.device_taints(node["metadata"]["annotations"]).values()).count([])


def test_label_keys_are_parameters() -> None:
    keys = fleets.label_keys(["rack=example.com/nvlink-domain", "block=example.com/nvl-block"])
    assert keys == Keys(block="example.com/nvl-block", rack="example.com/nvlink-domain")
    (node,) = fleets.requested_nodes("dgx-h100", keys=keys)
    assert nodes.RACK not in node["metadata"]["labels"]
    assert node["metadata"]["labels"]["example.com/nvlink-domain"] == "dgx-h100-rack-0"
    for invalid_key in ("row=x", "rack", "rack="):
        with pytest.raises(UsageError, match="zone, block, rack"):
            fleets.label_keys([invalid_key])


OWN_FLEET = """
description: A fleet of the user's own.
profiles:
  npu: {description: A., architecture: arm64, capacity: {cpu: "4", memory: 8Gi, pods: "9"},
    labels: {nvidia.com/gpu.count: "8"}}
deviceClasses: [{name: npu, selectors: ['device.driver == "npu.example.com"'], extendedResourceName: example.com/npu}]
parts:
- {profile: npu, nodes: 2, labels: {example.com/row: a}}
- {profile: npu, nodes: 1, labels: {example.com/row: b}}
- {profile: dgx-h100, nodes: 1, labels: {example.com/row: b}}
- {profile: dgx-h100, racks: 1}
"""


def test_a_file_of_the_user_can_be_a_fleet(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(OWN_FLEET)
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in fleets.requested_nodes(str(file))}
    assert list(labels) == [f"mine-npu-{i}" for i in range(3)] + [f"mine-dgx-h100-{i}" for i in range(5)]
    assert [entry.get("example.com/row", "") for entry in labels.values()] == ["a", "a", "b", "b", "", "", "", ""]
    placed, racked = labels["mine-dgx-h100-0"], labels["mine-dgx-h100-1"]
    assert not {nodes.RACK, nodes.BLOCK, nodes.ZONE} & placed.keys() and {nodes.RACK, nodes.ZONE} <= racked.keys()
    (device_class,) = fleets.requested_classes(str(file))
    selectors = [{"cel": {"expression": 'device.driver == "npu.example.com"'}}]
    assert device_class["spec"] == {"selectors": selectors, "extendedResourceName": "example.com/npu"}
    assert fleets.requested_classes("tiny:2") == [] == fleets.requested_classes("mixed")
    with pytest.raises(UsageError, match="has a size of its own"):
        fleets.requested_nodes(f"{file}:2")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("arm64", "arm65", "mine.yaml:4: profiles.npu.architecture: "),
        ("example.com/row: b", "example.com/row: a", "mine.yaml:9: parts[1].profile: duplicate profile"),
        ("nodes: 2", "nodes: 10001", "parts: has more than 10,000 nodes"),
        ("profile: npu", "profile: npo", "unknown node profile 'npo' — did you mean"),
    ],
)
def test_an_invalid_fleet_of_the_user_is_reported(tmp_path: Path, before: str, after: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(OWN_FLEET.replace(before, after))
    with pytest.raises(UsageError) as caught:
        fleets.requested_nodes(str(file))
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{profile: tinny, nodes: 1}", "did you mean"),
        ("{profile: tiny}", "parts"),
        ("{profile: cpu, racks: 1}", "no rack"),
        ("{profile: tiny, nodes: 1}, {profile: tiny, racks: 1}", "duplicate"),
    ],
)
def test_an_invalid_fleet_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.yaml").write_text(f"description: Mine.\nparts: [{text}]\n")
    with pytest.raises(UsageError) as caught:
        fleets.load(tmp_path / "mine.yaml")
    assert message in str(caught.value) and "\n" not in str(caught.value)
