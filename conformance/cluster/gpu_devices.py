"""GPUs as devices of Dynamic Resource Allocation: the annotations of a node that has them, and the ResourceSlices and
DeviceClasses that the driver for NVIDIA GPUs publishes (DRA-20, DRA-21). Pure functions.

The labels of a node describe its GPUs, as those of GPU feature discovery do. A node offers its GPUs either as an
extended resource or as devices, never as both. A device that has failed keeps its place in the slice and has a taint.
"""

from __future__ import annotations

import copy
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import yaml

from conformance.cluster import device_pools, gpu_partitions
from conformance.cluster.annotations import decoded
from conformance.cluster.device_pools import CounterSet, Device, DevicePool
from conformance.cluster.gpu_partitions import Partitions
from conformance.cluster.nodes import GPU, OCCUPIED, PER_ROOT, PROFILE, Manifest
from conformance.data import folder
from conformance.errors import UsageError

Form = Literal["extended", "devices"]
"""How nodes offer their GPUs: as the extended resource nvidia.com/gpu, or as devices."""

DRIVER = "gpu.nvidia.com"
DEVICES = "conformance.grove.io/gpu-devices"
"""The annotation of a node whose GPUs are devices: a JSON object with the fields of `Gpus`."""
FAILED = "conformance.grove.io/failed-gpus"
"""The annotation of a node with devices that have failed: a JSON object from device names to the fields of
`DeviceFailure`."""
OCCUPIED_TAINT = {"key": "conformance.grove.io/occupied", "effect": "NoSchedule"}
"""The taint of a device that is taken."""
XID = "conformance.grove.io/xid"
"""The key of the taint of a device that has failed. Its value is the number of the error."""
MAX_GPUS = 256
"""Maximum number of GPUs of a node with devices, far above that of any machine: more are a mistake in a profile."""
MAX_DEVICES, MAX_COUNTER_SETS = 64, 8
"""Maximum numbers in a slice (DRA-03). 128 devices would be permitted until one of them is tainted."""
_SLICE_SUFFIX = re.compile(r"(-counters)?(-[1-9][0-9]*)?")
DRIVER_VERSION, CUDA_VERSION = "580.95.5", "13.0.0"
"""The versions that all devices report."""


@dataclass(frozen=True)
class Gpus:
    """The GPUs of a node. `memory` is a quantity in Mi, and `per_root` the number of GPUs that share a PCIe root."""

    count: Annotated[int, msgspec.Meta(ge=0, le=MAX_GPUS)]
    product: str
    architecture: str
    compute_capability: str
    memory: str
    per_root: Annotated[int, msgspec.Meta(ge=1)] = 1


@dataclass(frozen=True)
class DeviceFailure:
    """The failure of a device. `xid` is the number by which NVIDIA's driver reports the error; `drain` evicts the pods
    that use the device."""

    xid: int
    drain: bool = False

    @property
    def taint(self) -> dict[str, str]:
        """Return the taint of the device (DRA-08)."""
        return {"key": XID, "value": str(self.xid), "effect": "NoExecute" if self.drain else "NoSchedule"}


def as_devices(node: Manifest) -> Manifest:
    """Return a node that offers its GPUs as devices instead of as an extended resource. A node without GPUs is returned
    unchanged, and so is one whose profile lists its devices. Raises UsageError if the node has too many GPUs to publish
    them."""
    count = int(node["status"]["allocatable"].get(GPU, "0"))
    if not count or device_pools.POOLS in node["metadata"]["annotations"]:
        return node
    if count > MAX_GPUS:
        problem = f"node {node['metadata']['name']} has {count} GPUs, too many for devices"
        raise UsageError(problem, where="--gpus", hint=f"at most {MAX_GPUS}")
    labels = node["metadata"]["labels"]
    gpus = Gpus(
        count,
        labels.get("nvidia.com/gpu.product", labels[PROFILE]),
        labels.get("nvidia.com/gpu.family", "unknown").capitalize(),
        f"{labels.get('nvidia.com/gpu.compute.major', '0')}.{labels.get('nvidia.com/gpu.compute.minor', '0')}.0",
        f"{labels.get('nvidia.com/gpu.memory', '0')}Mi",
        int(node["metadata"]["annotations"].get(PER_ROOT, "1")),
    )
    changed = copy.deepcopy(node)
    changed["metadata"]["annotations"][DEVICES] = json.dumps(vars(gpus))
    for amounts in (changed["status"]["capacity"], changed["status"]["allocatable"]):
        amounts.pop(GPU, None)
    return changed


def offered(nodes: Iterable[Manifest], form: Form) -> list[Manifest]:
    """Return nodes that offer their GPUs in the given form."""
    return [as_devices(node) if form == "devices" else node for node in nodes]


def gpus_of(annotations: Mapping[str, str] | None) -> Gpus | None:
    """Return the GPUs that a node offers as devices; None if there are none, or if the annotation is malformed."""
    try:
        return decoded(annotations, DEVICES, Gpus)
    except ValueError:
        return None


def failures_of(annotations: Mapping[str, str] | None) -> dict[str, DeviceFailure]:
    """Return the failures of a node's devices by name; empty if there are none, or if the annotation is malformed."""
    try:
        return decoded(annotations, FAILED, dict[str, DeviceFailure]) or {}
    except ValueError:
        return {}


def with_failure(annotations: Mapping[str, str] | None, device: str, failure: DeviceFailure | None) -> str | None:
    """Return the annotation of a node after a failure of a device, or, if `failure` is None, after its repair; None if
    no device of the node has failed any more."""
    failures: dict[str, DeviceFailure | None] = {**failures_of(annotations), device: failure}
    entries = {name: vars(entry) for name, entry in sorted(failures.items()) if entry is not None}
    return json.dumps(entries) if entries else None


def device_names(annotations: Mapping[str, str] | None) -> list[str]:
    """Return the names of the devices of a node that can fail: its cards and their partitions. Empty if the node offers
    no devices."""
    gpus = gpus_of(annotations)
    cards = [f"gpu-{index}" for index in range(gpus.count)] if gpus else []
    return list(dict.fromkeys([*cards, *device_taints(annotations)]))


def device_taints(annotations: Mapping[str, str] | None) -> dict[str, list[dict[str, str]]]:
    """Map the devices of a node to their taints. A card that has failed takes its partitions with it."""
    taints: dict[str, list[dict[str, str]]] = {}
    for manifest in slice_manifests("", "", annotations):
        for device in manifest["spec"].get("devices", ()):
            taints[device["name"]] = device.get("taints", [])
    return taints


def offers_devices(annotations: Mapping[str, str] | None) -> bool:
    """Return whether a node offers devices: its GPUs, or the pools of its profile."""
    return device_pools.POOLS in (annotations or {}) or gpus_of(annotations) is not None


def slice_name(pool: str, driver: str = DRIVER) -> str:
    """Return the name of the first ResourceSlice of a pool. Most pools have the name of their node."""
    return f"{pool}-{driver}"


def is_slice_of(name: str, pool: str, driver: str = DRIVER) -> bool:
    """Return whether a ResourceSlice with this name is one of those that are published for a pool."""
    stem = slice_name(pool, driver)
    return name.startswith(stem) and _SLICE_SUFFIX.fullmatch(name.removeprefix(stem)) is not None


def slice_manifests(
    node: str, uid: str, annotations: Mapping[str, str] | None, generation: int = 1
) -> Sequence[Manifest]:
    """Return the ResourceSlices with the devices of a node; empty if the annotations are malformed. The node owns them,
    so that they are deleted with the node. Counters are in slices of their own, as the API demands."""
    try:
        pools = [*_gpu_pools(node, annotations), *device_pools.pools_of(node, annotations)]
    except ValueError:
        return ()
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    return [
        manifest
        for pool in pools
        for manifest in _pool_manifests(pool, node, owner, annotations, generation=generation)
    ]


def _pool_manifests(
    pool: DevicePool, node: str, owner: Manifest, annotations: Mapping[str, str] | None, *, generation: int
) -> list[Manifest]:
    failures, occupied_cards = failures_of(annotations), _occupied_cards(annotations)
    devices = [_with_taints(device, failures, occupied_cards) for device in pool.complete_devices()]
    contents = {_suffix("", index): {"devices": part} for index, part in enumerate(_parts(devices, MAX_DEVICES))}
    for index, part in enumerate(_parts(msgspec.to_builtins(pool.shared_counters), MAX_COUNTER_SETS)):
        contents[_suffix("-counters", index)] = {"sharedCounters": part}
    pool_name = pool.pool_name(node)
    reference = {"name": pool_name, "generation": generation, "resourceSliceCount": len(contents)}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": slice_name(pool_name, pool.driver) + suffix, "ownerReferences": [owner]},
            "spec": {"driver": pool.driver, "nodeName": node, "pool": dict(reference), **content},
        }
        for suffix, content in contents.items()
    ]


def _gpu_pools(node: str, annotations: Mapping[str, str] | None) -> list[DevicePool]:
    """Return the pool of the GPUs that a node offers as devices, if it does. Raises ValueError if the annotation of the
    partitions is malformed."""
    gpus, partitions = gpus_of(annotations), gpu_partitions.partitions_of(annotations)
    if gpus is None:
        return []
    devices = [device for index in range(gpus.count) for device in _card_devices(node, index, gpus, partitions)]
    is_dynamic = partitions is not None and partitions.dynamic
    sets = [_counter_set(index, gpus, partitions) for index in range(gpus.count)] if partitions and is_dynamic else []
    counters = msgspec.convert(sets, list[CounterSet])
    return [DevicePool(driver=DRIVER, devices=msgspec.convert(devices, list[Device]), shared_counters=counters)]


def _with_taints(
    device: Mapping[str, Any], failures: Mapping[str, DeviceFailure], occupied_cards: set[str]
) -> dict[str, Any]:
    """Return a device with its own taints, and with those of its failure and its occupancy."""
    name = device["name"]
    card = name.partition("-mig-")[0]
    taints = [*device.get("taints", ()), *([dict(OCCUPIED_TAINT)] if card in occupied_cards else [])]
    if failure := failures.get(name) or failures.get(card):
        taints.append(failure.taint)
    return {**device, "taints": taints} if taints else dict(device)


def with_generations(manifests: Sequence[Manifest], stored_specs: Sequence[Mapping[str, Any]]) -> Sequence[Manifest]:
    """Return slices with the generations of their pools, which follow from the slices that are stored."""
    for spec in (manifest["spec"] for manifest in manifests):
        pool = spec["pool"]
        stored = [
            item for item in stored_specs if (item["driver"], item["pool"]["name"]) == (spec["driver"], pool["name"])
        ]
        pool["generation"] = next_generation(stored, pool["resourceSliceCount"])
    return manifests


def surplus_slices(stored_specs: Mapping[str, Mapping[str, Any]], manifests: Sequence[Manifest]) -> list[str]:
    """Return the names of stored slices that a node no longer needs: those of the same drivers. `stored_specs` maps
    names to specs. Slices of other drivers are those of somebody else, whatever their names."""
    drivers = {manifest["spec"]["driver"] for manifest in manifests}
    needed_names = {manifest["metadata"]["name"] for manifest in manifests}
    return [name for name, spec in stored_specs.items() if name not in needed_names and spec["driver"] in drivers]


def next_generation(stored_specs: Iterable[Mapping[str, Any]], slice_count: int) -> int:
    """Return the generation of a pool. It grows when the number of slices changes, so that nobody takes a mixture of
    old and new slices for the pool (DRA-02)."""
    pools = [spec["pool"] for spec in stored_specs]
    newest = max((pool["generation"] for pool in pools), default=1)
    counts = {pool["resourceSliceCount"] for pool in pools if pool["generation"] == newest}
    return newest + 1 if counts - {slice_count} else newest


def _occupied_cards(annotations: Mapping[str, str] | None) -> set[str]:
    text = (annotations or {}).get(OCCUPIED, "")
    return {f"gpu-{index}" for index in range(int(text))} if text.isdecimal() and len(text) < 5 else set()


def _suffix(kind: str, index: int) -> str:
    return f"{kind}-{index}" if index else kind


def _parts(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def with_times(desired: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the desired spec of a slice with the times that the API server has added to the taints of the stored one,
    so that the two are equal if nothing has to change, and a taint keeps its time if something else does."""
    stored_taints = {device["name"]: device.get("taints", ()) for device in stored.get("devices", ())}
    spec = copy.deepcopy(dict(desired))
    for device in spec.get("devices", ()):
        for taint in device.get("taints", ()):
            for stored_taint in stored_taints.get(device["name"], ()):
                if stored_taint.items() >= taint.items() and "timeAdded" in stored_taint:
                    taint["timeAdded"] = stored_taint["timeAdded"]
    return spec


def _card_devices(node: str, index: int, gpus: Gpus, partitions: Partitions | None) -> list[dict[str, Any]]:
    """Return the devices of one card: the card, its partitions, or both if counters tell which ones are free."""
    card = _device(node, index, gpus)
    if partitions is None:
        return [card]
    memory = _mebibytes(gpus.memory)
    devices = [card] if partitions.dynamic else []
    for partition in gpu_partitions.card_partitions(partitions):
        name = f"{card['name']}-{partition.suffix}"
        mig_attributes = {
            "type": {"string": "mig"},
            "uuid": {"string": f"MIG-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{name}.{node}')}"},
            "profile": {"string": partition.profile},
            "parentUUID": card["attributes"]["uuid"],
        }
        share = memory * len(partition.memory_slices) // partitions.memory_slices
        devices.append(
            {
                "name": name,
                "attributes": {**card["attributes"], **mig_attributes},
                "capacity": {"memory": {"value": _quantity(share)}},
            }
        )
        if partitions.dynamic:
            consumed = gpu_partitions.slice_counters(partitions, partition)
            devices[-1]["consumesCounters"] = [_counters(index, consumed, share)]
    if partitions.dynamic:
        card["consumesCounters"] = [_counters(index, gpu_partitions.slice_counters(partitions), memory)]
    return devices


def _counter_set(index: int, gpus: Gpus, partitions: Partitions) -> dict[str, Any]:
    content = _counters(index, gpu_partitions.slice_counters(partitions), _mebibytes(gpus.memory))
    return {"name": content["counterSet"], "counters": content["counters"]}


def _counters(index: int, slices: Mapping[str, int], memory: int) -> dict[str, Any]:
    """Return the consumption of slices and memory of a card."""
    amounts = {name: {"value": str(amount)} for name, amount in slices.items()}
    return {"counterSet": f"gpu-{index}-counter-set", "counters": {"memory": {"value": _quantity(memory)}, **amounts}}


def _device(node: str, index: int, gpus: Gpus) -> dict[str, Any]:
    root = index // gpus.per_root
    attributes: dict[str, dict[str, Any]] = {
        "type": {"string": "gpu"},
        "uuid": {"string": f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{node}')}"},
        "productName": {"string": gpus.product},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": gpus.architecture},
        "cudaComputeCapability": {"version": gpus.compute_capability},
        "cudaDriverVersion": {"version": CUDA_VERSION},
        "driverVersion": {"version": DRIVER_VERSION},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{root:02x}"},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{root:02x}:{index % gpus.per_root:02x}.0"},
    }
    return {
        "name": f"gpu-{index}",
        "attributes": attributes,
        "capacity": {"memory": {"value": _quantity(_mebibytes(gpus.memory))}},
    }


def _mebibytes(memory: str) -> int:
    return int(memory.removesuffix("Mi"))


def _quantity(mebibytes: int) -> str:
    """Return an amount of memory as the API server writes it: in the largest unit that divides it."""
    amount, units = mebibytes, ["Mi", "Gi", "Ti"]
    while amount and amount % 1024 == 0 and len(units) > 1:
        amount //= 1024
        units.pop(0)
    return f"{amount}{units[0]}" if amount else "0"


def class_manifests() -> Sequence[Manifest]:
    """Return the DeviceClasses of the drivers for NVIDIA GPUs and ComputeDomains (DRA-21)."""
    return list(yaml.safe_load_all((folder("kwok-profiles") / "device-classes.yaml").read_text("utf-8")))
