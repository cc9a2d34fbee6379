"""ComputeDomains, as NVIDIA's driver for them serves them (DRA-21, DRA-23, DRA-24): the ResourceSlice of a node with a
fabric, and the ResourceClaimTemplate of a domain. Pure functions.

The label `nvidia.com/gpu.clique` of a node names its fabric, as GPU feature discovery does. Only nodes whose GPUs are
devices have channels.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from conformance.cluster import gpu_devices
from conformance.cluster.nodes import FABRIC, Manifest
from conformance.data import folder
from conformance.grove import expected_domains
from kube.objects import ObjectMeta

DRIVER = "compute-domain.nvidia.com"
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
CHANNEL = "channel"
DOMAIN = expected_domains.NODE_LABEL
"""The label with the uid of the domain that a node serves, or that a template belongs to. Also the name of the driver's
finalizer on domains and templates."""
TARGET = "resource.nvidia.com/computeDomainTarget"
"""The label of a template that says whose pods use it."""
READY, NOT_READY = "Ready", "NotReady"


class ComputeDomain(msgspec.Struct):
    """A ComputeDomain."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}

    @property
    def template_name(self) -> str:
        """Return the name of the template that the domain requests; empty if it requests none."""
        return expected_domains.template_of({"spec": self.spec})

    @property
    def node_entries(self) -> dict[str, dict[str, Any]]:
        """Return the entries of the nodes in the domain's status, by node."""
        return {str(entry.get("name")): entry for entry in self.status.get("nodes") or ()}

    def is_ready_on(self, node: str) -> bool:
        """Return whether the daemon of the domain is Ready on a node."""
        return bool(self.node_entries.get(node, {}).get("status") == READY)


def has_fabric(node: ObjectMeta) -> bool:
    """Return whether a node has channels."""
    return bool(node.label(FABRIC)) and gpu_devices.offers_devices(node.annotations)


def slice_manifests(node: ObjectMeta, generation: int = 1) -> list[Manifest]:
    """Return the ResourceSlice of a node with a fabric: its channel and its daemon. Empty for other nodes."""
    if not has_fabric(node):
        return []
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid, "controller": True}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": gpu_devices.slice_name(node.name, DRIVER), "ownerReferences": [owner]},
            "spec": {
                "driver": DRIVER,
                "nodeName": node.name,
                "pool": {"name": node.name, "generation": generation, "resourceSliceCount": 1},
                "devices": [
                    {"name": f"{kind}-0", "attributes": {"type": {"string": kind}, "id": {"int": 0}}}
                    for kind in (CHANNEL, "daemon")
                ],
            },
        }
    ]


def claim_template(domain: ComputeDomain) -> Manifest:
    """Return the ResourceClaimTemplate of a domain: a claim for the channel of a node, with the domain's uid."""
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainChannelConfig",
        "domainID": domain.metadata.uid,
        "allocationMode": (domain.spec.get("channel") or {}).get("allocationMode", "Single"),
    }
    devices = {
        "requests": [{"name": CHANNEL, "exactly": {"deviceClassName": CHANNEL_CLASS}}],
        "config": [{"requests": [CHANNEL], "opaque": {"driver": DRIVER, "parameters": parameters}}],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": domain.template_name,
            "namespace": domain.metadata.namespace,
            "labels": {DOMAIN: domain.metadata.uid, TARGET: "Workload"},
            "finalizers": [DOMAIN],
        },
        "spec": {"spec": {"devices": devices}},
    }


def crd_manifest() -> Manifest:
    """Return the CustomResourceDefinition of ComputeDomains, which the driver brings."""
    manifest: Manifest = yaml.safe_load((folder("fixtures") / "crds" / "computedomains.yaml").read_text("utf-8"))
    return manifest
