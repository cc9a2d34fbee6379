"""Tests of partitions of GPUs: their devices, counters and slices, and mistakes in profiles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster import gpu_devices, gpu_partitions, node_profiles, nodes
from conformance.cluster.gpu_devices import DeviceFailure
from conformance.errors import UsageError
from tests.cluster.device_nodes import devices_node, slices

PROFILES = """\
    1g: {computeSlices: 1, memorySlices: 1, placements: [0, 1, 2]}
    2g: {computeSlices: 2, memorySlices: 2, placements: [0, 2]}
"""
PROFILE = f"""\
description: A node.
architecture: amd64
capacity: {{cpu: "8", memory: 32Gi, pods: "110", nvidia.com/gpu: "2"}}
labels: {{nvidia.com/gpu.memory: "16384"}}
partitions:
  computeSlices: 3
  memorySlices: 4
  profiles:
{PROFILES}"""


def specs_by_name(manifest: nodes.Manifest, generation: int = 1) -> dict[str, dict[str, Any]]:
    """Map the names of the slices of a node to their specs."""
    return {item["metadata"]["name"]: item["spec"] for item in slices(manifest, generation=generation)}


def node(tmp_path: Path, partitions: str) -> nodes.Manifest:
    """Return a node with devices, whose profile has these lines in its partitions."""
    path = tmp_path / "split.yaml"
    path.write_text(PROFILE + partitions)
    (manifest,) = gpu_devices.offered([nodes.node_manifest(node_profiles.load(path), 0)], "devices")
    return manifest


def dgx() -> nodes.Manifest:
    return devices_node("dgx-h100-mig")


def test_all_partitions_are_published_within_the_limits_of_a_slice() -> None:
    specs = specs_by_name(dgx())
    assert list(specs) == [f"dgx-h100-mig-0-gpu.nvidia.com{suffix}" for suffix in ("", "-1", "-counters")]
    assert {spec["pool"]["resourceSliceCount"] for spec in specs.values()} == {3}
    *with_devices, with_counters = specs.values()
    assert [len(spec["devices"]) for spec in with_devices] == [64, 48]
    assert "devices" not in with_counters and len(with_counters["sharedCounters"]) == 8
    names = [device["name"] for spec in with_devices for device in spec["devices"]]
    assert len(set(names)) == 8 * 14 and names[:3] == ["gpu-0", "gpu-0-mig-1g10gb-0", "gpu-0-mig-1g10gb-1"]


def test_a_partition_consumes_its_share_and_the_card_everything() -> None:
    devices = {device["name"]: device for device in specs_by_name(dgx())["dgx-h100-mig-0-gpu.nvidia.com"]["devices"]}
    (counter_set, *_) = specs_by_name(dgx())["dgx-h100-mig-0-gpu.nvidia.com-counters"]["sharedCounters"]
    (consumption,) = devices["gpu-0"]["consumesCounters"]
    assert consumption == {"counterSet": "gpu-0-counter-set", "counters": counter_set["counters"]}
    partition = devices["gpu-0-mig-3g40gb-4"]
    assert partition["consumesCounters"][0]["counters"] == {
        "memory": {"value": "40779Mi"},
        "compute-slices": {"value": "3"},
        **{f"memory-slice-{index}": {"value": "1"} for index in (4, 5, 6, 7)},
    }
    assert partition["capacity"] == {"memory": {"value": "40779Mi"}}
    attributes = partition["attributes"]
    assert (attributes["type"], attributes["profile"]) == ({"string": "mig"}, {"string": "3g.40gb"})
    assert attributes["parentUUID"] == devices["gpu-0"]["attributes"]["uuid"] != attributes["uuid"]


def test_cards_that_are_split_have_no_whole_card_and_no_counters(tmp_path: Path) -> None:
    (spec,) = specs_by_name(node(tmp_path, "  split: [1g, 2g]\n")).values()
    names = [device["name"] for device in spec["devices"]]
    assert names == [f"gpu-{card}-mig-{name}" for card in (0, 1) for name in ("1g-0", "2g-2")]
    assert not any("consumesCounters" in device for device in spec["devices"])


def test_a_card_that_fails_takes_its_partitions_with_it() -> None:
    manifest = dgx()
    annotations = manifest["metadata"]["annotations"]
    annotations[gpu_devices.FAILED] = gpu_devices.with_failure(annotations, "gpu-0", DeviceFailure(79))
    tainted = [name for name, taints in gpu_devices.device_taints(annotations).items() if taints]
    assert len(tainted) == 14 and all(name.startswith("gpu-0") for name in tainted)
    annotations[gpu_devices.FAILED] = gpu_devices.with_failure({}, "gpu-1-mig-2g20gb-4", DeviceFailure(79))
    assert [name for name, taints in gpu_devices.device_taints(annotations).items() if taints] == ["gpu-1-mig-2g20gb-4"]
    assert set(gpu_devices.device_taints(annotations)) == set(gpu_devices.device_names(annotations))


def test_the_generation_of_a_pool_grows_with_the_number_of_its_slices() -> None:
    stored = list(specs_by_name(dgx()).values())
    assert gpu_devices.next_generation((), 3) == 1
    assert gpu_devices.next_generation(stored, 3) == 1
    assert gpu_devices.next_generation(stored[:2], 3) == 1  # one was deleted
    assert gpu_devices.next_generation(stored, 1) == 2
    half_written = [*specs_by_name(dgx(), generation=2).values(), {"pool": {"generation": 1, "resourceSliceCount": 1}}]
    assert gpu_devices.next_generation(half_written, 3) == 2


def test_only_slices_of_the_same_driver_are_surplus() -> None:
    manifest = dgx()
    stored = {**specs_by_name(manifest), "dgx-h100-mig-0-npu.example.com": {"driver": "npu.example.com"}}
    del manifest["metadata"]["annotations"][gpu_partitions.PARTITIONS]
    surplus = gpu_devices.surplus_slices(stored, slices(manifest))
    assert surplus == ["dgx-h100-mig-0-gpu.nvidia.com-1", "dgx-h100-mig-0-gpu.nvidia.com-counters"]
    assert gpu_devices.surplus_slices(stored, []) == [], "a malformed annotation takes no devices away"


@pytest.mark.parametrize("name", ["n-gpu.nvidia.com-x7k2p", "n-gpu.nvidia.com-0", "other-gpu.nvidia.com"])
def test_slices_of_others_are_left_alone(name: str) -> None:
    assert not gpu_devices.is_slice_of(name, "n")
    assert all(gpu_devices.is_slice_of(slice_name, "dgx-h100-mig-0") for slice_name in specs_by_name(dgx()))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"computeSlices": "x"}'])
def test_a_malformed_annotation_of_partitions_publishes_nothing(text: str) -> None:
    manifest = dgx()
    manifest["metadata"]["annotations"][gpu_partitions.PARTITIONS] = text
    assert not slices(manifest)


@pytest.mark.parametrize(
    ("partitions", "message"),
    [
        ("  split: [2g, 2g]\n", "split.yaml:11: partitions.split: these partitions do not fit on a card of 3 compute"),
        ("  split: [1g, 3g]\n", "split.yaml:11: partitions.split[1]: unknown profile '3g'"),
        ("", "split.yaml:5: partitions: "),
        ("  split: [1g]\n  dynamic: true\n", "split.yaml:5: partitions: "),
    ],
)
def test_a_split_that_is_not_possible_is_a_mistake(tmp_path: Path, partitions: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        node(tmp_path, partitions)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ("    big: {computeSlices: 4, memorySlices: 1, placements: [0]}\n", "big: does not fit on a card of 3 compute"),
        ("    end: {computeSlices: 1, memorySlices: 2, placements: [3]}\n", "end: does not fit on a card of 3 compute"),
        (
            "".join(f"    p{i}: {{computeSlices: 1, memorySlices: 1, placements: [0, 1]}}\n" for i in range(100)),
            "a card has 200 partitions — a card has at most 63",
        ),
    ],
)
def test_partitions_that_no_card_can_have_are_a_mistake(tmp_path: Path, profiles: str, message: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(PROFILE.replace(PROFILES, profiles) + "  dynamic: true\n")
    with pytest.raises(UsageError) as caught:
        node_profiles.load(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert re.search(r"wrong\.yaml:[89]: partitions\.profiles", str(caught.value))
