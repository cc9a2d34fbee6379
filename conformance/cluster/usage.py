"""Capacity and requests of a cluster: nodes, resources and devices by profile, pods by state. Pure functions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from conformance.cluster import compute_domains
from conformance.cluster.nodes import PROFILE, is_schedulable
from conformance.grove import pods as pod_facts
from conformance.grove import quantities
from conformance.grove.fields import Document, condition, items, label, name, terminating, text

Device = tuple[str, str, str]
"""Driver, pool and name."""


@dataclass
class Amount:
    """An amount of a resource in its base unit: CPUs, bytes, or a number. Only bound pods count as requests."""

    requested: Decimal = Decimal(0)
    allocatable: Decimal = Decimal(0)


@dataclass
class ProfileUsage:
    """The nodes of one profile. `ready` is the number of nodes to which pods can be bound."""

    profile: str
    nodes: int = 0
    ready: int = 0
    pods: int = 0
    amounts: defaultdict[str, Amount] = field(default_factory=lambda: defaultdict(Amount))
    """Maps a resource to its amount."""
    devices: int = 0
    """The number of published devices, partitions included."""
    allocated_devices: int = 0


@dataclass(frozen=True)
class Usage:
    """The nodes by profile, sorted by name, and the number of pods by state, the most frequent state first."""

    groups: Sequence[ProfileUsage]
    pods: Mapping[str, int]

    @property
    def nodes(self) -> tuple[int, int]:
        """Return the number of Ready nodes, and the number of all nodes."""
        return sum(group.ready for group in self.groups), sum(group.nodes for group in self.groups)

    @property
    def devices(self) -> tuple[int, int]:
        """Return the number of allocated devices, and the number of published devices."""
        return sum(group.allocated_devices for group in self.groups), sum(group.devices for group in self.groups)

    def amount(self, resource: str) -> Amount:
        """Return the amount of a resource in the whole cluster."""
        amounts = [group.amounts[resource] for group in self.groups if resource in group.amounts]
        zero = Decimal(0)
        return Amount(sum((a.requested for a in amounts), zero), sum((a.allocatable for a in amounts), zero))


def usage(
    nodes: Iterable[Document],
    pods: Iterable[Document],
    slices: Iterable[Document] = (),
    claims: Iterable[Document] = (),
) -> Usage:
    """Return the capacity of `nodes` with the devices of their `slices`, and the requests of `pods` with the devices of
    their `claims`. Nodes without a profile are in the group `-`."""
    groups: dict[str, ProfileUsage] = {}
    resources_by_node: dict[str, Mapping[str, Decimal]] = {}
    group_by_node: dict[str, ProfileUsage] = {}
    for node in nodes:
        profile = label(node, PROFILE) or "-"
        group = group_by_node[name(node)] = groups.setdefault(profile, ProfileUsage(profile))
        group.nodes += 1
        group.ready += is_schedulable(node)
        resources_by_node[name(node)] = allocatable = quantities.allocatable(node)
        for resource, value in allocatable.items():
            group.amounts[resource].allocatable += value
    states: Counter[str] = Counter()
    for pod in pods:
        states[pod_state(pod)] += 1
        group_of_pod = group_by_node.get(pod_facts.node(pod))
        if group_of_pod is not None and not pod_facts.has_ended(pod):
            group_of_pod.pods += 1
            for resource, value in quantities.requested(pod).items():
                if resource in resources_by_node[pod_facts.node(pod)]:  # otherwise, devices meet the request
                    group_of_pod.amounts[resource].requested += value
    allocated = {device for claim in claims for device in _allocated_devices(claim)}
    for item in slices:
        if text(item, "spec", "driver") == compute_domains.DRIVER:  # channels and daemons are no GPUs
            continue
        group_of_slice = group_by_node.get(text(item, "spec", "nodeName"))
        if group_of_slice is not None:
            devices = {_device(item, device) for device in items(item, "spec", "devices")}
            group_of_slice.devices += len(devices)
            group_of_slice.allocated_devices += len(devices & allocated)
    return Usage([groups[profile] for profile in sorted(groups)], dict(states.most_common()))


def _device(resource_slice: Document, device: Document) -> Device:
    return text(resource_slice, "spec", "driver"), text(resource_slice, "spec", "pool", "name"), text(device, "name")


def _allocated_devices(claim: Document) -> Iterator[Device]:
    for result in items(claim, "status", "allocation", "devices", "results"):
        if not result.get("adminAccess"):
            yield text(result, "driver"), text(result, "pool"), text(result, "device")


def pod_state(pod: Document) -> str:
    """Return the state of a pod as kubectl prints it, but with more detail: `Ready` or `NotReady` instead of Running,
    `Unschedulable` instead of Pending."""
    if terminating(pod):
        return "Terminating"
    waiting_reasons = (
        text(status, "state", "waiting", "reason") for status in items(pod, "status", "containerStatuses")
    )
    if reason := next(filter(None, waiting_reasons), ""):
        return reason
    phase = text(pod, "status", "phase")
    if phase == "Running":
        return "Ready" if pod_facts.is_ready(pod) else "NotReady"
    if phase == "Pending" and not pod_facts.is_bound(pod):
        return text(condition(pod, "PodScheduled"), "reason") or phase
    return phase or "Pending"
