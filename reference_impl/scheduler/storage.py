"""Volumes of pods, and the storage objects that determine on which nodes a volume can be used."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from kube.objects import ObjectMeta
from reference_impl.scheduler.selectors import LabelSelector, NodeSelector

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class ClaimSource(msgspec.Struct, rename="camel"):
    """`persistentVolumeClaim` of a volume."""

    claim_name: str = ""


class Disk(msgspec.Struct, rename={"pd_name": "pdName", "volume_id": "volumeID", "read_only": "readOnly"}):
    """`gcePersistentDisk`, `awsElasticBlockStore`, `cinder` or `portworxVolume` of a volume."""

    pd_name: str = ""
    volume_id: str = ""
    read_only: bool = False


class AzureDisk(msgspec.Struct, rename={"disk_uri": "diskURI"}):
    """`azureDisk` of a volume."""

    disk_uri: str = ""


class Iscsi(msgspec.Struct, rename="camel"):
    """`iscsi` of a volume."""

    iqn: str = ""
    read_only: bool = False


class Rbd(msgspec.Struct, rename="camel"):
    """`rbd` of a volume."""

    monitors: list[str] = []
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Csi(msgspec.Struct, rename="camel"):
    """`csi` of a PersistentVolume."""

    driver: str = ""
    volume_handle: str = ""


class InTreeVolume(msgspec.Struct, rename="camel"):
    """The in-tree volume plugins that have been migrated to CSI."""

    gce_persistent_disk: Disk | None = None
    aws_elastic_block_store: Disk | None = None
    azure_disk: AzureDisk | None = None
    cinder: Disk | None = None
    portworx_volume: Disk | None = None

    @property
    def migrated(self) -> tuple[str, str] | None:
        """The CSI driver that has replaced the plugin, and the name of the volume."""
        if self.gce_persistent_disk:
            return MIGRATED["kubernetes.io/gce-pd"], self.gce_persistent_disk.pd_name
        if self.azure_disk:
            return MIGRATED["kubernetes.io/azure-disk"], self.azure_disk.disk_uri
        for name, disk in (
            ("aws-ebs", self.aws_elastic_block_store),
            ("cinder", self.cinder),
            ("portworx-volume", self.portworx_volume),
        ):
            if disk:
                return MIGRATED[f"kubernetes.io/{name}"], disk.volume_id
        return None


MIGRATED = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""The CSI driver that has replaced each in-tree plugin."""


class Volume(InTreeVolume):
    """The fields of a pod's volume that schedulers read."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None

    @property
    def exclusive(self) -> bool:
        """Whether a second pod on the same node may be denied the volume."""
        return bool(self.gce_persistent_disk or self.aws_elastic_block_store or self.iscsi or self.rbd)

    @property
    def relevant(self) -> bool:
        """Whether any filter considers the volume."""
        return bool(self.persistent_volume_claim or self.ephemeral or self.iscsi or self.rbd or self.migrated)


class ResourceList(msgspec.Struct):
    """`requests` of a claim."""

    requests: dict[str, str | int] | None = None


class ClaimSpec(msgspec.Struct, rename="camel"):
    """The fields of a claim's spec that the scheduler reads."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] = []
    resources: ResourceList = msgspec.field(default_factory=ResourceList)
    selector: LabelSelector | None = None
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None


class Phase(msgspec.Struct):
    """The phase of a claim or a volume."""

    phase: str = ""


class PersistentVolumeClaim(msgspec.Struct):
    """The fields of a PersistentVolumeClaim that the scheduler reads."""

    metadata: ObjectMeta
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: Phase = msgspec.field(default_factory=Phase)

    @property
    def storage_class(self) -> str:
        """The name of the storage class, or an empty string if the object names none."""
        old = (self.metadata.annotations or {}).get(BETA_CLASS)
        return (self.spec.storage_class_name or "") if old is None else old

    @property
    def bound(self) -> bool:
        """Whether the claim is completely bound to a volume."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in (self.metadata.annotations or {})

    @property
    def selected_node(self) -> str | None:
        """The node for which the volume is provisioned, or None if no node is selected."""
        return (self.metadata.annotations or {}).get(SELECTED_NODE)

    @property
    def size(self) -> str | int:
        """The requested storage."""
        return (self.spec.resources.requests or {}).get("storage", 0)


class ClaimRef(msgspec.Struct):
    """`claimRef` of a volume."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class VolumeAffinity(msgspec.Struct):
    """`nodeAffinity` of a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(InTreeVolume):
    """The fields of a volume's spec that the scheduler reads."""

    capacity: dict[str, str | int] | None = None
    access_modes: list[str] = []
    claim_ref: ClaimRef | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeAffinity | None = None
    csi: Csi | None = None


class PersistentVolume(msgspec.Struct):
    """The fields of a PersistentVolume that the scheduler reads."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec = msgspec.field(default_factory=PersistentVolumeSpec)
    status: Phase = msgspec.field(default_factory=Phase)

    @property
    def storage_class(self) -> str:
        """The name of the storage class, or an empty string if the object names none."""
        old = (self.metadata.annotations or {}).get(BETA_CLASS)
        return self.spec.storage_class_name if old is None else old

    @property
    def affinity(self) -> NodeSelector | None:
        """The nodes that can use the volume; None means all nodes."""
        return self.spec.node_affinity.required if self.spec.node_affinity else None


class TopologyExpression(msgspec.Struct):
    """A label key and its allowed values."""

    key: str = ""
    values: list[str] = []


class TopologyTerm(msgspec.Struct, rename="camel"):
    """A term of `allowedTopologies`."""

    match_label_expressions: list[TopologyExpression] | None = None


class StorageClass(msgspec.Struct, rename="camel"):
    """The fields of a StorageClass that the scheduler reads."""

    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologyTerm] | None = None

    @property
    def waits_for_first_consumer(self) -> bool:
        """Whether volumes are bound only when a pod is scheduled."""
        return self.volume_binding_mode == "WaitForFirstConsumer"


class Allocatable(msgspec.Struct):
    """The number of volumes of a driver that can be attached to a node."""

    count: int | None = None


class NodeDriver(msgspec.Struct):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: Allocatable | None = None


class CsiNodeSpec(msgspec.Struct):
    """The spec of a CSINode."""

    drivers: list[NodeDriver] = []


class CsiNode(msgspec.Struct, dict=True):
    """The fields of a CSINode that the scheduler reads."""

    metadata: ObjectMeta
    spec: CsiNodeSpec = msgspec.field(default_factory=CsiNodeSpec)

    @cached_property
    def limits(self) -> dict[str, int]:
        """The number of volumes that can be attached to the node, for each driver with a limit."""
        counts = ((driver.name, driver.allocatable) for driver in self.spec.drivers)
        return {name: count.count for name, count in counts if count is not None and count.count is not None}


class CsiDriverSpec(msgspec.Struct, rename="camel"):
    """The spec of a CSIDriver."""

    storage_capacity: bool | None = None


class CsiDriver(msgspec.Struct):
    """The fields of a CSIDriver that the scheduler reads."""

    metadata: ObjectMeta
    spec: CsiDriverSpec = msgspec.field(default_factory=CsiDriverSpec)


class CsiStorageCapacity(msgspec.Struct, rename="camel"):
    """The fields of a CSIStorageCapacity that the scheduler reads."""

    metadata: ObjectMeta
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | None = None
    maximum_volume_size: str | int | None = None


class AttachmentSource(msgspec.Struct, rename="camel"):
    """The volume of an attachment."""

    persistent_volume_name: str | None = None


class AttachmentSpec(msgspec.Struct, rename="camel"):
    """The spec of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = msgspec.field(default_factory=AttachmentSource)


class VolumeAttachment(msgspec.Struct):
    """The fields of a VolumeAttachment that the scheduler reads."""

    metadata: ObjectMeta
    spec: AttachmentSpec = msgspec.field(default_factory=AttachmentSpec)
