"""Tests of node profiles and of the manifests generated from them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from conformance.cluster import node_profiles, nodes
from conformance.errors import UsageError

H100 = "dgx-h100"


def test_a_dgx_h100_has_the_figures_of_the_fleet_model() -> None:
    (node,) = nodes.manifests(H100, 1)
    common_resources = {"pods": "110", "nvidia.com/gpu": "8", "ephemeral-storage": "1Ti"}
    assert node["status"]["capacity"] == {"cpu": "224", "memory": "2048Gi"} | common_resources
    assert node["status"]["allocatable"] == {"cpu": "220", "memory": "1984Gi"} | common_resources
    labels = node["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.count"] == "8"
    assert labels["nvidia.com/gpu.memory"] == "81559"
    assert "nvidia.com/gpu.clique" not in labels


def test_a_node_of_a_pool_has_its_label_and_taint_and_others_have_none() -> None:
    (pool_node,), (plain_node,) = nodes.manifests("tiny", 1, pool="t7"), nodes.manifests("tiny", 1)
    assert pool_node["metadata"]["name"] == "t7-tiny-0" and plain_node["metadata"]["name"] == "tiny-0"
    assert pool_node["metadata"]["labels"][nodes.POOL] == "t7" and nodes.POOL not in plain_node["metadata"]["labels"]
    taint = {"key": nodes.POOL, "value": "t7", "effect": "NoSchedule"}
    assert pool_node["spec"]["taints"] == [taint] and plain_node["spec"] == {}
    toleration = nodes.toleration("t7")
    assert {key: toleration[key] for key in taint} == taint


def test_a_node_has_the_addresses_that_its_pods_report() -> None:
    manifests = nodes.manifests("tiny", 40, pool="a")
    addresses_by_type = [
        {entry["type"]: entry["address"] for entry in node["status"]["addresses"]} for node in manifests
    ]
    assert [entry["Hostname"] for entry in addresses_by_type] == [node["metadata"]["name"] for node in manifests]
    assert len({entry["InternalIP"] for entry in addresses_by_type}) == 40


def test_extra_labels_are_added_last() -> None:
    (node,) = nodes.manifests("tiny", 1, extra_labels={"a": "b", nodes.ZONE: "zone-z"})
    assert node["metadata"]["labels"]["a"] == "b" and node["metadata"]["labels"][nodes.ZONE] == "zone-z"


@pytest.mark.parametrize("name", [n for n in node_profiles.names() if node_profiles.profile(n).nodes_per_rack])
def test_domains_are_nested_and_manifests_are_deterministic(name: str) -> None:
    profile = node_profiles.profile(name)
    manifests = nodes.manifests(name, 3 * profile.nodes_per_rack, pool="p")
    assert manifests == nodes.manifests(name, 3 * profile.nodes_per_rack, pool="p")
    labels = [node["metadata"]["labels"] for node in manifests]
    assert len({entry[nodes.RACK] for entry in labels}) == 3
    for inner_key, outer_key in ((nodes.RACK, nodes.BLOCK), (nodes.BLOCK, nodes.ZONE), (nodes.HOSTNAME, nodes.RACK)):
        pairs = {(entry[inner_key], entry[outer_key]) for entry in labels}
        assert len(pairs) == len({inner for inner, _ in pairs})


def test_nodes_of_different_pools_or_profiles_share_no_rack() -> None:
    manifest_lists = [
        nodes.manifests("tiny", 8, pool="a"),
        nodes.manifests("tiny", 8, pool="b"),
        nodes.manifests(H100, 8),
    ]
    racks = [{node["metadata"]["labels"][nodes.RACK] for node in manifests} for manifests in manifest_lists]
    assert not racks[0] & racks[1] and not racks[0] & racks[2]


def test_a_gb200_rack_is_one_nvlink_domain_of_72_gpus() -> None:
    manifests = nodes.manifests("gb200-nvl72", 36)
    gpus_by_clique: dict[str, int] = {}
    for node in manifests:
        clique = node["metadata"]["labels"]["nvidia.com/gpu.clique"]
        gpus_by_clique[clique] = gpus_by_clique.get(clique, 0) + int(node["status"]["allocatable"]["nvidia.com/gpu"])
    assert sorted(gpus_by_clique.values()) == [72, 72]


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="tiny"):
        node_profiles.profile("tinny")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"capcity": {}}, "capcity"),
        ({"nodesPerRack": "two"}, "nodesPerRack"),
        ({"capacity": {"cpu": 8, "memory": "1Gi", "pods": "110"}}, "capacity.cpu"),
        (
            {"capacity": {"cpu": "8", "memory": "1Gi"}},
            ': capacity: the field "pods" is missing — add it (how many pods',
        ),
        (
            {"capacity": {"cpu": "8", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": "1.5"}},
            "a whole number, as text",
        ),
        ({"capacity": {"cpu": "8", "memory": "1Gi", "pods": "1k"}}, "a whole number, as text"),
        ({"allocatable": {"nvidia.com/tpu": "1"}}, "nvidia.com/tpu"),
        ({"labels": {"nvidia.com/gpu.count": "3"}}, "nvidia.com/gpu.count"),
        ({"partitions": "all"}, "partitions: holds a text — give a mapping"),
        ({"gpuMetrics": {"DCGM_FI_DEV_GPU_TMP": 1}}, 'did you mean "DCGM_FI_DEV_GPU_TEMP"'),
    ],
)
def test_an_invalid_profile_is_reported_with_file_line_and_field(
    tmp_path: Path, change: dict[str, object], text: str
) -> None:
    valid_profile: dict[str, object] = {
        "description": "A node.",
        "architecture": "amd64",
        "capacity": {"cpu": "8", "memory": "1Gi", "pods": "110"},
        "nodesPerRack": 1,
        "racksPerBlock": 1,
    }
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(valid_profile | change))
    with pytest.raises(UsageError) as caught:
        node_profiles.load(path)
    message = str(caught.value)
    assert "mine.yaml:" in message and text in message and "\n" not in message


@pytest.mark.parametrize(
    ("last_line", "expected_message"),
    [
        ("racksPerBlok: 1", 'mine.yaml:5: racksPerBlok: unknown field — did you mean "racksPerBlock"?'),
        ("", 'the field "racksPerBlock" is missing — add it: nodesPerRack needs it'),
    ],
)
def test_a_profile_without_a_field_that_another_field_needs_is_reported(
    tmp_path: Path, last_line: str, expected_message: str
) -> None:
    capacity = 'capacity: {cpu: "8", memory: 1Gi, pods: "110"}'
    (tmp_path / "mine.yaml").write_text(
        f"description: A node.\narchitecture: amd64\n{capacity}\nnodesPerRack: 1\n{last_line}"
    )
    with pytest.raises(UsageError) as caught:
        node_profiles.load(tmp_path / "mine.yaml")
    assert expected_message in str(caught.value)
