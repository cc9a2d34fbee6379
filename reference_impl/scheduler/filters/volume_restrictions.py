"""Volumes that only one pod may use: one pod in the cluster (ReadWriteOncePod) or one pod on a node (some in-tree
plugins)."""

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
        self._missing = ""
        self._single: list[tuple[str, str]] = []
        for name, ephemeral in pod.claims:
            claim = None if ephemeral else state.claim.get((pod.metadata.namespace, name))
            if claim is None and not ephemeral:
                self._missing = self._missing or f'persistentvolumeclaim "{name}" not found'
            elif claim is not None and "ReadWriteOncePod" in claim.spec.access_modes:
                self._single.append(claim.metadata.key)

    @property
    def dynamic(self) -> bool:
        return bool(self._disks or self._single)

    def refusal(self, node: Node) -> str:
        if self._missing:
            return self._missing
        if self._disks:
            for other in self.state.pods_on.get(node.metadata.name, ()):
                if any(_conflict(disk, other_disk) for disk in self._disks for other_disk in other.volumes):
                    return "node had no available disk"
        if any(self.state.used_claims.get(key, 0) > 0 for key in self._single):
            return "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
        return ""


def _conflict(one: Volume, other: Volume) -> bool:
    gce, its_gce = one.gce_persistent_disk, other.gce_persistent_disk
    if gce and its_gce and gce.pd_name == its_gce.pd_name and not (gce.read_only and its_gce.read_only):
        return True
    ebs, its_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs and its_ebs and ebs.volume_id == its_ebs.volume_id:
        return True
    iscsi, its_iscsi = one.iscsi, other.iscsi
    if iscsi and its_iscsi and iscsi.iqn == its_iscsi.iqn and not (iscsi.read_only and its_iscsi.read_only):
        return True
    rbd, its_rbd = one.rbd, other.rbd
    if not rbd or not its_rbd or (rbd.read_only and its_rbd.read_only):
        return False
    return (rbd.pool, rbd.image) == (its_rbd.pool, its_rbd.image) and bool({*rbd.monitors} & {*its_rbd.monitors})
