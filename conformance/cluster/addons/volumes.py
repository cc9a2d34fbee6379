"""Volumes for claims of the provisioner `conformance.grove.io/volumes`, according to their StorageClass. Pure
functions.

A volume is only an object: no container reads or writes it, but it determines which nodes schedulers consider. If the
binding mode of the class is Immediate, all nodes can use the volume, unless the class has `allowedTopologies`: in this
case only nodes in the first topology can use it. If the mode is WaitForFirstConsumer, the volume can be used by nodes
in the zone of the selected node, or in its domain of the label that the parameter `topologyKey` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.cluster.nodes import ZONE
from kube.objects import ObjectMeta
from kube.resource import Resource

PROVISIONER = "conformance.grove.io/volumes"
PROVISIONER_ANNOTATION = "volume.kubernetes.io/storage-provisioner"
"""The annotation with which the controller manager requests a claim's volume from a provisioner."""
SELECTED_NODE_ANNOTATION = "volume.kubernetes.io/selected-node"
"""The annotation with which a scheduler names the node of the first consumer."""
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
TOPOLOGY_KEY = "topologyKey"

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)

Object = Mapping[str, Any]


class VolumeClaim(msgspec.Struct):
    """The fields of a PersistentVolumeClaim that the provisioner reads."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}

    @property
    def needs_volume(self) -> bool:
        """Return whether the controller manager waits for this provisioner to create a volume."""
        uses_provisioner = (self.metadata.annotations or {}).get(PROVISIONER_ANNOTATION) == PROVISIONER
        return uses_provisioner and not self.spec.get("volumeName") and self.metadata.deletion_timestamp is None

    @property
    def selected_node(self) -> str:
        """Return the node of the first consumer; empty if none is selected."""
        return (self.metadata.annotations or {}).get(SELECTED_NODE_ANNOTATION, "")


class VolumeStatus(msgspec.Struct):
    """The fields of a volume's status that this module reads."""

    phase: str = ""


class VolumeSpec(msgspec.Struct, rename="camel"):
    """The fields of a volume's spec that this module reads."""

    persistent_volume_reclaim_policy: str = ""


class Volume(msgspec.Struct):
    """The fields of a PersistentVolume that the provisioner reads."""

    metadata: ObjectMeta
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: VolumeStatus = msgspec.field(default_factory=VolumeStatus)

    @property
    def is_unused(self) -> bool:
        """Return whether the volume was created by this provisioner, its claim is gone, and its reclaim policy is
        Delete."""
        created_here = (self.metadata.annotations or {}).get(_PROVISIONED_BY) == PROVISIONER
        is_deletable = self.spec.persistent_volume_reclaim_policy == "Delete"
        return (
            created_here
            and is_deletable
            and self.status.phase == "Released"
            and self.metadata.deletion_timestamp is None
        )


def storage_classes() -> list[dict[str, Any]]:
    """Return the StorageClasses of a new cluster: `standard`, which is the default, and `immediate`."""
    return [
        _storage_class("standard", "WaitForFirstConsumer", {"storageclass.kubernetes.io/is-default-class": "true"}),
        _storage_class("immediate", "Immediate", {}),
    ]


def waits_for_consumer(storage_class: Object) -> bool:
    """Return whether the volumes of a class wait for the first consumer."""
    return bool(storage_class.get("volumeBindingMode") == "WaitForFirstConsumer")


def volume(claim: VolumeClaim, storage_class: Object, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the volume for a claim. `labels` are the labels of the selected node, if the class waits for one."""
    name = f"pvc-{claim.metadata.uid}"
    domain = _domain(storage_class, labels)
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in domain.items()]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": claim.spec.get("accessModes"),
            "capacity": {"storage": claim.spec["resources"]["requests"]["storage"]},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.metadata.namespace,
                "name": claim.metadata.name,
                "uid": claim.metadata.uid,
            },
            "hostPath": {"path": f"/volumes/{name}"},
            "mountOptions": storage_class.get("mountOptions"),
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim.spec.get("volumeMode", "Filesystem"),
            **({"nodeAffinity": affinity} if expressions else {}),
        },
    }


def _domain(storage_class: Object, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of the nodes that can use a new volume of a class; empty if all nodes can."""
    terms = storage_class.get("allowedTopologies") or [{}]
    expressions = terms[0].get("matchLabelExpressions") or []
    if not waits_for_consumer(storage_class):
        return {expression["key"]: expression["values"][0] for expression in expressions}
    default_key = (storage_class.get("parameters") or {}).get(TOPOLOGY_KEY, ZONE)
    keys = [expression["key"] for expression in expressions] or [default_key]
    return {key: labels[key] for key in keys if key in labels}


def _storage_class(name: str, mode: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": dict(annotations)},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
    }
