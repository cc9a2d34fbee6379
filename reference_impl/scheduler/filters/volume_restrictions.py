"""The filter for volumes that only one pod may use: one pod in the cluster (ReadWriteOncePod) or one pod on a node
(some in-tree plugins)."""

from __future__ import annotations

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.storage import Volume


class VolumeRestrictions(Plugin):
    """Rejects nodes on which another pod uses the same disk, and all nodes if another pod uses the same
    ReadWriteOncePod claim."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._disks = [volume for volume in pod.volumes if volume.exclusive]
        self._missing_object = ""
        self._exclusive_claims: list[tuple[str, str]] = []
        for name, ephemeral in pod.claims:
            claim = None if ephemeral else state.claims_by_key.get((pod.metadata.namespace, name))
            if claim is None and not ephemeral:
                self._missing_object = self._missing_object or f'persistentvolumeclaim "{name}" not found'
            elif claim is not None and "ReadWriteOncePod" in claim.spec.access_modes:
                self._exclusive_claims.append(claim.metadata.key)

    @property
    def dynamic(self) -> bool:
        return bool(self._disks or self._exclusive_claims)

    def refusal(self, node: Node) -> str:
        if self._missing_object:
            return self._missing_object
        if self._disks:
            for other in self.state.pods_by_node.get(node.metadata.name, ()):
                if any(_conflicts(disk, other_disk) for disk in self._disks for other_disk in other.volumes):
                    return "node had no available disk"
        if any(self.state.used_claims.get(key, 0) > 0 for key in self._exclusive_claims):
            return "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
        return ""


def _conflicts(one: Volume, other: Volume) -> bool:
    gce, other_gce = one.gce_persistent_disk, other.gce_persistent_disk
    if gce and other_gce and gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only):
        return True
    ebs, other_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs and other_ebs and ebs.volume_id == other_ebs.volume_id:
        return True
    iscsi, other_iscsi = one.iscsi, other.iscsi
    if iscsi and other_iscsi and iscsi.iqn == other_iscsi.iqn and not (iscsi.read_only and other_iscsi.read_only):
        return True
    rbd, other_rbd = one.rbd, other.rbd
    if not rbd or not other_rbd or (rbd.read_only and other_rbd.read_only):
        return False
    return (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image) and bool({*rbd.monitors} & {*other_rbd.monitors})
