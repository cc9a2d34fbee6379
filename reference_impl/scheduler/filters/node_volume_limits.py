"""The filter for the number of volumes of a CSI driver that can be attached to a node."""

from __future__ import annotations

from collections import Counter

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.storage import MIGRATED, CsiNode, PersistentVolumeClaim

Handle = tuple[str, str]
"""A driver and the name of a volume."""


class NodeVolumeLimits(Plugin):
    """Rejects nodes that cannot attach all additional volumes of the pod."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._limited = {driver for item in state.csi_nodes for driver in item.limits} if pod.volumes else set()

    @property
    def dynamic(self) -> bool:
        return bool(self._limited and self.pod.volumes)

    def refusal(self, node: Node) -> str:
        pod, state = self.pod, self.state
        if not pod.volumes:
            return ""
        csi_node = state.csi_nodes_by_name.get(node.metadata.name)
        limits = csi_node.limits if csi_node else {}
        if not limits:
            return ""
        pod_volumes = _handles(pod, state, csi_node)
        attached = set()
        for other in state.pods_by_node.get(node.metadata.name, ()):
            attached |= _handles(other, state, csi_node)
        added_counts = Counter(driver for driver, _ in pod_volumes - attached)
        attached_counts = Counter(driver for driver, _ in attached | _attachments(node, state))
        if any(
            driver in limits and attached_counts[driver] + count > limits[driver]
            for driver, count in added_counts.items()
        ):
            return "node exceeds max volume count"
        return ""


def _handles(pod: Pod, state: ClusterState, csi_node: CsiNode | None) -> set[Handle]:
    """Return the CSI volumes of a pod."""
    handles: set[Handle] = set()
    for name, ephemeral in pod.claims:
        claim = state.claims_by_key.get((pod.metadata.namespace, name))
        owner = claim.metadata.controller if claim and ephemeral else None
        if claim is not None and (not ephemeral or (owner and owner.uid == pod.metadata.uid)):
            handle = _handle(claim, state, csi_node)
            if handle and all(handle):
                handles.add(handle)
    if csi_node is not None:
        handles |= {volume.migrated for volume in pod.volumes if volume.migrated}
    return handles


def _handle(claim: PersistentVolumeClaim, state: ClusterState, csi_node: CsiNode | None) -> Handle | None:
    volume = state.volumes_by_name.get(claim.spec.volume_name)
    if volume is not None:
        if volume.spec.csi is not None:
            return volume.spec.csi.driver, volume.spec.csi.volume_handle
        return volume.spec.migrated if csi_node is not None else None
    storage_class = state.storage_classes_by_name.get(claim.storage_class)
    if storage_class is None:
        return None
    provisioner = storage_class.provisioner
    if provisioner in MIGRATED:
        if csi_node is None:
            return None
        provisioner = MIGRATED[provisioner]
    return provisioner, "/".join(("unbound", *claim.metadata.key))


def _attachments(node: Node, state: ClusterState) -> set[Handle]:
    handles: set[Handle] = set()
    for item in state.attachments_by_node.get(node.metadata.name, ()):
        if item.spec.attacher:
            volume = state.volumes_by_name.get(item.spec.source.persistent_volume_name or "")
            if volume is not None and volume.spec.csi is not None:
                handles.add((item.spec.attacher, volume.spec.csi.volume_handle))
    return handles
