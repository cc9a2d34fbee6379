"""GPUs as devices of Dynamic Resource Allocation: the annotations of a node that has them, and the ResourceSlices and
DeviceClasses that the driver for NVIDIA GPUs publishes (DRA-20, DRA-21). Pure functions.

The labels of a node describe its GPUs, as those of GPU feature discovery do. A node offers its GPUs either as an
extended resource or as devices, never as both. A device that has failed keeps its place in the slice and has a taint.
"""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from conformance.cluster.nodes import GPU, PER_ROOT, PROFILE, Manifest
from conformance.data import folder

Form = Literal["extended", "devices"]
"""How nodes offer their GPUs: as the extended resource nvidia.com/gpu, or as devices."""

DRIVER = "gpu.nvidia.com"
DEVICES = "conformance.grove.io/gpu-devices"
"""The annotation of a node whose GPUs are devices: a JSON object with the fields of `Gpus`."""
FAILED = "conformance.grove.io/failed-gpus"
"""The annotation of a node with devices that have failed: a JSON object from device names to the fields of
`DeviceFailure`."""
XID = "conformance.grove.io/xid"
"""The key of the taint of a device that has failed. Its value is the number of the error."""
DRIVER_VERSION, CUDA_VERSION = "580.95.5", "13.0.0"
"""The versions that all devices report."""


@dataclass(frozen=True)
class Gpus:
    """The GPUs of a node. `memory` is a quantity in Mi, and `per_root` the number of GPUs that share a PCIe root."""

    count: int
    product: str
    architecture: str
    compute_capability: str
    memory: str
    per_root: int = 1


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
    unchanged."""
    count = int(node["status"]["allocatable"].get(GPU, "0"))
    if not count:
        return node
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
        return Gpus(**json.loads((annotations or {})[DEVICES]))
    except (KeyError, TypeError, ValueError):
        return None


def failures_of(annotations: Mapping[str, str] | None) -> dict[str, DeviceFailure]:
    """Return the failures of a node's devices by name; empty if there are none, or if the annotation is malformed."""
    try:
        entries = json.loads((annotations or {})[FAILED])
        return {
            str(device): DeviceFailure(int(fields["xid"]), bool(fields["drain"])) for device, fields in entries.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def with_failure(annotations: Mapping[str, str] | None, device: str, failure: DeviceFailure | None) -> str | None:
    """Return the annotation of a node after a failure of a device, or, if `failure` is None, after its repair; None if
    no device of the node has failed any more."""
    failures: dict[str, DeviceFailure | None] = {**failures_of(annotations), device: failure}
    entries = {name: vars(entry) for name, entry in sorted(failures.items()) if entry is not None}
    return json.dumps(entries) if entries else None


def device_names(annotations: Mapping[str, str] | None) -> list[str]:
    """Return the names of the devices of a node that can fail; empty if the node offers no devices."""
    gpus = gpus_of(annotations)
    return [f"gpu-{index}" for index in range(gpus.count)] if gpus else []


def slice_name(node: str) -> str:
    """Return the name of the ResourceSlice of a node."""
    return f"{node}-{DRIVER}"


def slice_manifest(node: str, uid: str, gpus: Gpus, failures: Mapping[str, DeviceFailure]) -> Manifest:
    """Return the ResourceSlice with the GPUs of a node. The node owns it, so that it is deleted with the node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    devices = [_device(node, index, gpus) for index in range(gpus.count)]
    for device in devices:
        if device["name"] in failures:
            device["taints"] = [failures[device["name"]].taint]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": slice_name(node), "ownerReferences": [owner]},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


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
        "capacity": {"memory": {"value": _canonical(gpus.memory)}},
    }


def _canonical(memory: str) -> str:
    """Return an amount in Mi as the API server writes it: in the largest unit that divides it."""
    amount, units = int(memory.removesuffix("Mi")), ["Mi", "Gi", "Ti"]
    while amount and amount % 1024 == 0 and len(units) > 1:
        amount //= 1024
        units.pop(0)
    return f"{amount}{units[0]}" if amount else "0"


def class_manifests() -> Sequence[Manifest]:
    """Return the DeviceClasses of the drivers for NVIDIA GPUs and ComputeDomains (DRA-21)."""
    return list(yaml.safe_load_all((folder("kwok-profiles") / "device-classes.yaml").read_text("utf-8")))
