"""The GPUs of nodes, and the containers that hold them: by the devices of allocated claims, or by numbers where GPUs
are an extended resource. Pure, but for the memory of `GpuNumbers`.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from conformance.cluster import gpu_devices
from conformance.cluster.addons import usage
from conformance.cluster.addons.gpu_metrics import Holder, Labels, SimulatedGpu
from conformance.cluster.nodes import GPU, is_schedulable
from conformance.grove import quantities
from conformance.grove.fields import Document, at, items, label, mapping, name, text, uid

Device = tuple[str, str]
"""Pool and name of a device of the driver for GPUs."""
_MEBIBYTE = 1 << 20


class GpuNumbers:
    """The numbers of the GPUs of pods that request the extended resource: the first free ones, until the pod ends. A
    kubelet chooses them when the pod starts; here, they are chosen when somebody asks for the first time."""

    def __init__(self) -> None:
        self._uids_by_node: dict[str, dict[int, str]] = {}

    def assign(self, node: str, available: range, requests: Mapping[str, int]) -> dict[int, str]:
        """Map the `available` numbers of a node to the uids of the pods that hold them. `requests` are the numbers of
        GPUs of its running pods, the oldest first."""
        uids = {
            number: pod_uid
            for number, pod_uid in self._uids_by_node.get(node, {}).items()
            if pod_uid in requests and number in available
        }
        free_numbers = [number for number in available if number not in uids]
        for pod_uid, count in requests.items():
            missing_count = count - list(uids.values()).count(pod_uid)
            uids |= dict.fromkeys(free_numbers[:missing_count], pod_uid)
            del free_numbers[:missing_count]
        self._uids_by_node[node] = uids
        return uids


def simulated_gpus(
    nodes: Iterable[Document],
    pods: Iterable[Document],
    slices: Iterable[Document],
    claims: Iterable[Document],
    numbers: GpuNumbers,
) -> list[SimulatedGpu]:
    """Return the GPUs of the nodes that have a kubelet, with the containers of running pods that hold them."""
    running_pods = {uid(pod): pod for pod in pods if usage.has_metrics(pod)}
    pods_by_node: dict[str, list[Document]] = defaultdict(list)
    for pod in running_pods.values():
        pods_by_node[text(pod, "spec", "nodeName")].append(pod)
    slices_by_node: dict[str, list[Document]] = defaultdict(list)
    for item in slices:
        if text(item, "spec", "driver") == gpu_devices.DRIVER:
            slices_by_node[text(item, "spec", "nodeName")].append(item)
    holders = device_holders(claims, running_pods)
    gpus: list[SimulatedGpu] = []
    for node in sorted(nodes, key=name):
        if is_schedulable(node):
            gpus += _devices(node, slices_by_node[name(node)], holders)
            gpus += _numbered_gpus(node, pods_by_node[name(node)], numbers)
    return gpus


def device_holders(claims: Iterable[Document], pods: Mapping[str, Document]) -> dict[Device, list[Holder]]:
    """Map the devices of allocated claims to the containers that use them. `pods` are the running pods by uid."""
    holders: dict[Device, list[Holder]] = defaultdict(list)
    for claim in claims:
        users = [
            pods[entry_uid]
            for entry in items(claim, "status", "reservedFor")
            if (entry_uid := text(entry, "uid")) in pods
        ]
        for result in items(claim, "status", "allocation", "devices", "results"):
            if text(result, "driver") == gpu_devices.DRIVER and not result.get("adminAccess"):
                device = text(result, "pool"), text(result, "device")
                for pod in users:
                    names = list(_claiming_containers(pod, name(claim), text(result, "request").partition("/")[0]))
                    holders[device] += _holders(pod, names)
    return holders


def _claiming_containers(pod: Document, claim: str, request: str) -> Iterator[str]:
    """Generate the names of the containers that use a request of a claim."""
    created = {
        text(entry, "name"): text(entry, "resourceClaimName") for entry in items(pod, "status", "resourceClaimStatuses")
    }
    references = {
        text(entry, "name")
        for entry in items(pod, "spec", "resourceClaims")
        if (text(entry, "resourceClaimName") or created.get(text(entry, "name"))) == claim
    }
    for container in items(pod, "spec", "containers"):
        for use in items(container, "resources", "claims"):
            if text(use, "name") in references and text(use, "request") in ("", request):
                yield text(container, "name")
    if text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName") == claim:
        for entry in items(pod, "status", "extendedResourceClaimStatus", "requestMappings"):
            if text(entry, "requestName") == request:
                yield text(entry, "containerName")


def _holders(pod: Document, containers: Collection[str]) -> list[Holder]:
    labels = {"namespace": text(pod, "metadata", "namespace"), "pod": name(pod)}
    return [
        ({**labels, "container": text(container, "name")}, mapping(pod, "metadata", "annotations"))
        for container in items(pod, "spec", "containers")
        if text(container, "name") in containers
    ]


def _devices(
    node: Document, slices: Iterable[Document], holders: Mapping[Device, list[Holder]]
) -> Iterator[SimulatedGpu]:
    for pool, device in [
        (text(s, "spec", "pool", "name"), device) for s in slices for device in items(s, "spec", "devices")
    ]:
        device_name = text(device, "name")
        is_partition = text(device, "attributes", "type", "string") == "mig"
        containers = holders.get((pool, device_name), [])
        if is_partition and not containers and device.get("consumesCounters"):
            continue  # one of many possible partitions, which does not exist
        card, _, partition = device_name.partition("-mig-")
        gpu_uuid = text(device, "attributes", "parentUUID" if is_partition else "uuid", "string")
        labels = _labels(node, card.removeprefix("gpu-"), gpu_uuid, text(device, "attributes", "productName", "string"))
        if is_partition:
            profile = text(device, "attributes", "profile", "string")
            labels |= {"GPU_I_PROFILE": profile, "GPU_I_ID": partition.rpartition("-")[2]}
        memory = quantities.amount(at(device, "capacity", "memory", "value")) or 0
        yield SimulatedGpu(labels, float(memory / _MEBIBYTE), node, _xid(device), is_partition, containers)


def _xid(device: Document) -> float:
    numbers = [text(taint, "value") for taint in items(device, "taints") if text(taint, "key") == gpu_devices.XID]
    return float(numbers[0]) if numbers and numbers[0].isdecimal() else 0.0


def _numbered_gpus(node: Document, pods: Sequence[Document], numbers: GpuNumbers) -> Iterator[SimulatedGpu]:
    count, allocatable = (int(mapping(node, "status", field).get(GPU, "0")) for field in ("capacity", "allocatable"))
    ordered_pods = sorted(pods, key=lambda pod: (text(pod, "status", "startTime"), uid(pod)))
    requests = {uid(pod): int(amount) for pod in ordered_pods if (amount := quantities.requested(pod).get(GPU))}
    # GPUs that are taken (`--occupied`) are the first ones.
    uids = numbers.assign(name(node), range(count - allocatable, count), requests) if count else {}
    pods_by_uid = {uid(pod): pod for pod in pods}
    memory = float(quantities.amount(label(node, "nvidia.com/gpu.memory")) or 0)
    for number in range(count):
        gpu_uuid = f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{number}.{name(node)}')}"
        labels = _labels(node, str(number), gpu_uuid, label(node, "nvidia.com/gpu.product"))
        pod = pods_by_uid.get(uids.get(number, ""))
        holders = _holders(pod, _gpu_containers(pod)[:1]) if pod is not None else []
        yield SimulatedGpu(labels, memory, node, holders=holders)


def _gpu_containers(pod: Document) -> list[str]:
    """Return the names of the containers that request the extended resource."""
    fields = ("requests", "limits")
    return [
        text(container, "name")
        for container in items(pod, "spec", "containers")
        if any(GPU in mapping(container, "resources", field) for field in fields)
    ]


def _labels(node: Document, index: str, gpu_uuid: str, model: str) -> Labels:
    return {"gpu": index, "UUID": gpu_uuid, "device": f"nvidia{index}", "modelName": model, "Hostname": name(node)}
