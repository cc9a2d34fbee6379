"""Tests of pools of devices in node profiles: what is published of them, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.cluster import fleets, gpu_devices
from conformance.cluster.device_pools import Device, DevicePool, with_common_fields
from conformance.errors import UsageError
from tests.cluster.device_nodes import slices

PROFILE = """
description: A node with devices.
architecture: amd64
capacity: {cpu: "8", memory: 32Gi, pods: "110", nvidia.com/gpu: "2"}
pools:
"""
COUNTERS = "sharedCounters: [{name: card, counters: {memory: {value: 8Gi}}}]"


def published_slices(
    tmp_path: Path, pools: str, count: int = 1, gpus: gpu_devices.Form = "extended"
) -> list[dict[str, Any]]:
    """Return the slices of nodes whose profile has these pools."""
    file = tmp_path / "own.yaml"
    file.write_text(PROFILE + pools)
    return slices(*gpu_devices.offered(fleets.requested_nodes(f"{file}:{count}"), gpus))


def test_each_pool_has_slices_of_its_own(tmp_path: Path) -> None:
    pools = f"""\
- {{driver: a.example.com, attributes: {{kind: {{string: fast}}}}, devices: [{{name: d-0}}], {COUNTERS}}}
- {{driver: a.example.com, name: side, devices: [{{name: d-0}}]}}
"""
    published = {item["metadata"]["name"]: item["spec"] for item in published_slices(tmp_path, pools)}
    assert list(published) == ["own-0-a.example.com", "own-0-a.example.com-counters", "own-0-side-a.example.com"]
    first, counters, side = published.values()
    assert first["devices"] == [{"name": "d-0", "attributes": {"kind": {"string": "fast"}}}]
    assert first["pool"] == counters["pool"] == {"name": "own-0", "generation": 1, "resourceSliceCount": 2}
    assert side["pool"] == {"name": "own-0-side", "generation": 1, "resourceSliceCount": 1}
    for name, spec in published.items():
        assert gpu_devices.is_slice_of(name, spec["pool"]["name"], spec["driver"])
        assert not gpu_devices.is_slice_of(name, spec["pool"]["name"], "b.example.com")


def test_two_hundred_devices_take_as_many_slices_as_they_need(tmp_path: Path) -> None:
    names = ", ".join(f"{{name: d-{index}}}" for index in range(200))
    published = published_slices(tmp_path, f"- {{driver: a.example.com, devices: [{names}]}}\n")
    assert [len(item["spec"]["devices"]) for item in published] == [64, 64, 64, 8]


def test_each_node_has_identifiers_of_its_own(tmp_path: Path) -> None:
    attributes = [f"{{name: d-{i}, attributes: {{uuid: {{string: GPU-<id-{n}>}}}}}}" for i, n in enumerate((0, 1, 0))]
    published = published_slices(
        tmp_path, f"- {{driver: a.example.com, devices: [{', '.join(attributes)}]}}\n", count=2
    )
    first, second = ([d["attributes"]["uuid"]["string"] for d in item["spec"]["devices"]] for item in published)
    assert first[0] == first[2] != first[1] and not {*first} & {*second}


def test_a_profile_that_lists_devices_gets_no_others(tmp_path: Path) -> None:
    published = published_slices(tmp_path, "- {driver: gpu.nvidia.com, devices: [{name: gpu-5}]}\n", gpus="devices")
    assert [device["name"] for item in published for device in item["spec"]["devices"]] == ["gpu-5"]


def test_common_fields_are_written_once() -> None:
    devices = [
        {"name": f"d-{index}", "attributes": {"kind": {"string": "fast"}, "index": {"int": index}}}
        for index in (0, 0, 2)
    ]
    pool = with_common_fields(DevicePool(driver="a.example.com", devices=msgspec.convert(devices, list[Device])))
    assert pool.attributes == {"kind": {"string": "fast"}} and pool.capacity == {}
    assert pool.devices[2] == Device("d-2", {"index": {"int": 2}})
    assert pool.complete_devices() == devices


ONE = "{name: d-0}"
CONSUMER = "{name: d-0, consumesCounters: [{counterSet: card, counters: {m: {value: '1'}}}]}"


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        (
            f"- {{driver: a.example.com, devices: [{ONE}]}}\n" * 2,
            "own.yaml:7: pools[1]: a second pool of a.example.com has the same name",
        ),
        (f"- {{driver: a.example.com, devices: [{ONE}, {ONE}]}}\n", "pools[0].devices: two of them are named 'd-0'"),
        (
            "- {driver: a.example.com, devices: ["
            + ", ".join(f"{{name: d-{index}}}" for index in range(1025))
            + "]}\n",
            "pools[0]: has 1025 devices — at most 1024",
        ),
        (f"- {{driver: a.example.com, devices: [{CONSUMER}]}}\n", "the counter set 'card', which the pool lacks"),
        (f"- {{driver: a.example.com, devices: [{CONSUMER}], {COUNTERS}}}\n", "the counter set 'card' has no 'm'"),
        (f"- {{driver: a.example.com, devices: [{ONE}], {COUNTERS[:-1]}, {COUNTERS[17:]}}}\n", "two of them are named"),
        (
            "- driver: a.example.com\n  devices:\n"
            + "".join(f"  - {{name: d-{i}, attributes: {{text: {{string: {'x' * 400}}}}}}}\n" for i in range(700)),
            "pools: are too large for a node",
        ),
        ("- {driver: a.example.com, devices: [{name: D_0}]}\n", "pools[0].devices[0].name: "),
    ],
)
def test_devices_that_no_driver_could_publish_are_a_mistake(tmp_path: Path, pools: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        published_slices(tmp_path, pools)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_malformed_annotation_publishes_nothing() -> None:
    annotations = {"conformance.grove.io/device-pools": "{"}
    assert gpu_devices.offers_devices(annotations) and not gpu_devices.slice_manifests("n", "uid", annotations)
