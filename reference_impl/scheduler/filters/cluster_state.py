"""The objects that filters read, indexed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reference_impl.scheduler.devices.ledger import Ledger
from reference_impl.scheduler.model import Namespace, Node, Pod
from reference_impl.scheduler.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)


@dataclass
class ClusterState:
    """Nodes, the pods on them, and everything else that decides where a pod may be placed."""

    nodes: Sequence[Node] = ()
    pods: Iterable[Pod] = ()
    namespaces: Iterable[Namespace] = ()
    volumes: Iterable[PersistentVolume] = ()
    claims: Iterable[PersistentVolumeClaim] = ()
    storage_classes: Iterable[StorageClass] = ()
    csi_nodes: Iterable[CsiNode] = ()
    csi_drivers: Iterable[CsiDriver] = ()
    storage_capacities: Iterable[CsiStorageCapacity] = ()
    attachments: Iterable[VolumeAttachment] = ()
    assumed_nodes: Mapping[str, str] = field(default_factory=dict)
    """Pods (by uid) whose binding request has been sent, with their node."""
    neighbors: Callable[[Pod], Iterable[tuple[Pod, Node]]] | None = None
    """Returns the pods on nodes that can affect the placement of a pod. None means that all pods can."""
    devices: Ledger = field(default_factory=Ledger)
    assumed_claims: dict[tuple[str, str], list[AssumedClaim]] = field(default_factory=dict)
    """Unbound claims that are used by pods placed in this attempt, by namespace and name."""

    @cached_property
    def placed(self) -> list[tuple[Pod, Node]]:
        """The pods on existing nodes that have not terminated, with their nodes."""
        nodes = {node.metadata.name: node for node in self.nodes}
        pairs = []
        for pod in self.pods:
            name = pod.spec.node_name or self.assumed_nodes.get(pod.metadata.uid)
            if name and pod.holds_resources and (node := nodes.get(name)) is not None:
                pairs.append((pod, node))
        return pairs

    @cached_property
    def pods_by_node(self) -> dict[str, list[Pod]]:
        """The pods with host ports or volumes, by node."""
        by_node: dict[str, list[Pod]] = defaultdict(list)
        for pod, node in self.placed:
            if pod.host_ports or pod.volumes:
                by_node[node.metadata.name].append(pod)
        return by_node

    @cached_property
    def used_claims(self) -> dict[tuple[str, str], int]:
        """The number of pods on nodes that use each claim."""
        users: dict[tuple[str, str], int] = defaultdict(int)
        for pods in self.pods_by_node.values():
            for pod in pods:
                for name, ephemeral in pod.claims:
                    if not ephemeral:
                        users[pod.metadata.namespace, name] += 1
        return users

    def related_pods(self, pod: Pod) -> Iterable[tuple[Pod, Node]]:
        """Return the pods on nodes to which affinity, anti-affinity or spread terms may relate the pod, with their
        nodes."""
        return self.placed if self.neighbors is None else self.neighbors(pod)

    def place(self, pod: Pod, node: Node, delta: int) -> None:
        """Add `delta` pods like this one to a node, or remove them if `delta` is negative."""
        self.devices.place(pod, node, delta)
        if not pod.host_ports and not pod.volumes:
            return
        used, node_pods = self.used_claims, self.pods_by_node[node.metadata.name]
        for _ in range(abs(delta)):
            if delta > 0:
                node_pods.append(pod)
            else:
                node_pods.remove(pod)
        for name, ephemeral in pod.claims:
            if not ephemeral:
                used[pod.metadata.namespace, name] += delta

    @cached_property
    def namespace_labels(self) -> dict[str, dict[str, str]]:
        """The labels of each namespace."""
        return {item.metadata.name: item.metadata.labels or {} for item in self.namespaces}

    @cached_property
    def claims_by_key(self) -> dict[tuple[str, str], PersistentVolumeClaim]:
        """The claims by namespace and name."""
        return {item.metadata.key: item for item in self.claims}

    @cached_property
    def volumes_by_name(self) -> dict[str, PersistentVolume]:
        """The volumes by name."""
        return _by_name(self.volumes)

    @cached_property
    def volumes_by_class(self) -> dict[str, list[PersistentVolume]]:
        """The volumes of each storage class."""
        by_class: dict[str, list[PersistentVolume]] = defaultdict(list)
        for volume in self.volumes:
            by_class[volume.storage_class].append(volume)
        return by_class

    @cached_property
    def storage_classes_by_name(self) -> dict[str, StorageClass]:
        """The storage classes by name."""
        return _by_name(self.storage_classes)

    @cached_property
    def csi_nodes_by_name(self) -> dict[str, CsiNode]:
        """The CSINodes by name."""
        return _by_name(self.csi_nodes)

    @cached_property
    def attachments_by_node(self) -> dict[str, list[VolumeAttachment]]:
        """The volume attachments of each node."""
        by_node: dict[str, list[VolumeAttachment]] = defaultdict(list)
        for item in self.attachments:
            by_node[item.spec.node_name].append(item)
        return by_node

    @cached_property
    def csi_drivers_by_name(self) -> dict[str, CsiDriver]:
        """The CSIDrivers by name."""
        return _by_name(self.csi_drivers)


@dataclass(frozen=True)
class AssumedClaim:
    """An unbound claim of a pod that is placed in this attempt."""

    node: Node
    volume: PersistentVolume | None
    """The volume that the claim will be bound to, or None if a volume is provisioned for the node."""


def _by_name(items: Iterable[Any]) -> dict[str, Any]:
    return {item.metadata.name: item for item in items}
