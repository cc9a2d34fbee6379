"""Profiles of fake nodes (`kwok-profiles/nodes/`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from conformance import documents, formats
from conformance.cluster import device_pools, gpu_partitions
from conformance.cluster.device_pools import DevicePool
from conformance.cluster.gpu_counters import COUNTERS
from conformance.cluster.gpu_partitions import Partitions
from conformance.data import folder
from conformance.documents import Document
from conformance.errors import UsageError
from conformance.formats import Format, Text

GPU = "nvidia.com/gpu"
EPHEMERAL_STORAGE = "1Ti"
"""The ephemeral storage of a node whose profile does not set it: every kubelet reports some, and pods may request
it."""
_COUNT = {"type": "string", "pattern": "^[0-9]{1,9}$", "description": "a whole number, as text"}
_QUANTITY = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$",
    "description": 'a quantity, as in "8" or 64Gi',
}

LabelValue = Annotated[str, Meta(pattern="^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")]
Resources = dict[str, Annotated[str, Meta(pattern=_QUANTITY["pattern"], description=_QUANTITY["description"])]]


class Taint(Format, frozen=True, omit_defaults=True):
    """A taint of a node."""

    key: Text
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str | None = None


class NodeFormat(Format, frozen=True, kw_only=True):
    """One kind of node of the fake cluster, as a file describes it."""

    description: Annotated[Text, Meta(description="one sentence that describes the node")]
    architecture: Literal["amd64", "arm64"]
    capacity: Annotated[
        Resources,
        Meta(
            description="resource name: quantity, both as text",
            extra_json_schema={
                "required": ["cpu", "memory", "pods"],
                "properties": {
                    "cpu": {"allOf": [_QUANTITY], "description": "CPUs of the node, as text"},
                    "memory": {"allOf": [_QUANTITY], "description": "memory of the node, as in 64Gi"},
                    "pods": {"allOf": [_COUNT], "description": "how many pods the node runs, as text"},
                    GPU: _COUNT,
                },
            },
        ),
    ]
    allocatable: Annotated[
        Resources,
        Meta(
            description="the amounts that differ from the capacity",
            extra_json_schema={"properties": {"pods": _COUNT, GPU: _COUNT}},
        ),
    ] = field(default_factory=dict)
    labels: Annotated[dict[str, LabelValue], Meta(description="labels of every such node, values as text")] = field(
        default_factory=dict
    )
    taints: Annotated[list[Taint], Meta(description="taints of every such node, as in spec.taints of a Node")] = field(
        default_factory=list
    )
    nodes_per_rack: Annotated[
        int, Meta(ge=1, description="how many nodes share a rack label; omitted for nodes without a rack")
    ] = 0
    racks_per_block: Annotated[int, Meta(ge=1, description="how many racks share a block label")] = 1
    rack_is_nvlink_domain: Annotated[
        bool, Meta(description="whether the nodes of a rack share nvidia.com/gpu.clique")
    ] = False
    gpus_per_pcie_root: Annotated[
        int, Meta(ge=1, description="how many GPUs share a PCIe root, 1 by default; seen where GPUs are devices")
    ] = 1
    partitions: Annotated[
        Partitions | None,
        Meta(
            description="which partitions (MIG) the GPUs have where GPUs are devices",
            extra_json_schema={"oneOf": [{"required": ["split"]}, {"required": ["dynamic"]}]},
        ),
    ] = None
    pools: Annotated[
        list[DevicePool],
        Meta(
            description="pools of devices, of any driver; <id-0>, <id-1>, … in a value stand for UUIDs of each node",
        ),
    ] = field(default_factory=list)
    gpu_metrics: Annotated[
        dict[str, float] | None,
        Meta(
            description="metrics of all GPUs, by counter of DCGM, as in DCGM_FI_DEV_GPU_TEMP: 41",
            extra_json_schema={"propertyNames": {"enum": sorted(COUNTERS)}},
        ),
    ] = None


ProfileFormat = Annotated[
    NodeFormat,
    Meta(
        extra_json_schema={
            "dependentRequired": {
                "nodesPerRack": ["racksPerBlock"],
                "racksPerBlock": ["nodesPerRack"],
                "rackIsNvlinkDomain": ["nodesPerRack"],
            }
        }
    ),
]


class NodeProfile(NodeFormat, frozen=True, kw_only=True):
    """One kind of node, with its name and all of its resources. Nodes with `nodes_per_rack` 0 are not in a rack or
    block."""

    name: str

    @property
    def gpus(self) -> int:
        """Return the number of a node's GPUs that pods can request."""
        return int(self.allocatable.get(GPU, "0"))


def names() -> list[str]:
    """Return the names of all profiles."""
    return sorted(path.stem for path in _profiles().glob("*.yaml"))


@cache
def profile(name: str) -> NodeProfile:
    """Return the profile `name`. Raises UsageError if there is none, or if its file is wrong (file, line, field)."""
    path = _profiles() / f"{name}.yaml"
    if not path.is_file():
        raise UsageError(f"unknown node profile {name!r}", hint=documents.suggestion(name, names()))
    return load(path)


def load(path: Path) -> NodeProfile:
    """Read and check one profile file. Raises UsageError if the file is invalid."""
    document, file = formats.read(path, ProfileFormat)
    node_profile = resolve(file, path.stem, document)
    count = node_profile.labels.get("nvidia.com/gpu.count")
    if count is not None and count != str(node_profile.gpus):  # TP-33
        raise UsageError(
            f"is {count}, but {node_profile.gpus} are allocatable",
            where=document.location("labels", "nvidia.com/gpu.count"),
            hint="make them agree",
        )
    return node_profile


def resolve(file: NodeFormat, name: str, document: Document, *field: str) -> NodeProfile:
    """Return the profile that a file has in a field. Its nodes may have fewer GPUs than their labels say, as those of a
    captured fleet. Raises UsageError if no node can be like this (file, line, field)."""
    capacity = {"ephemeral-storage": EPHEMERAL_STORAGE, **file.capacity}
    for resource in file.allocatable:
        if resource not in capacity:
            location = document.location(*field, "allocatable", resource)
            raise UsageError("is not in the capacity", where=location, hint="add it there too")
    if file.partitions is not None:
        gpu_partitions.check(file.partitions, document, *field, "partitions")
    device_pools.check(file.pools, document, *field, "pools")
    resources = {"capacity": capacity, "allocatable": {**capacity, **file.allocatable}}
    fields: Mapping[str, Any] = msgspec.structs.asdict(file)
    return NodeProfile(name=name, **{**fields, **resources})


def _profiles() -> Path:
    return folder("kwok-profiles") / "nodes"
