"""Nodes whose kubelet is gone, as far as the API shows it. Pure.

KWOK plays a node and its pods only while it holds the node's Lease (FC-081). A node with the annotation
conformance.grove.io/lost has its Lease taken away, so that nothing on it moves any more: pods start no more, and
deleted ones stay Terminating. What the node controller would write 40 s later, when the Lease has not been renewed, is
written at once: conditions Unknown, and pods not Ready. Taints and evictions are the controller-manager's own. When the
annotation goes, the Lease is free, and KWOK has the node and its pods again within 10 s, which is how often it looks.
"""

from __future__ import annotations

from typing import Any

import msgspec

from conformance.cluster.init_wait import Condition
from kube.objects import ObjectMeta

LOST = "conformance.grove.io/lost"
"""Annotation of a node, with any value: its kubelet is gone until the annotation goes."""
LEASES_OF_NODES = "kube-node-lease"
HOLDER = "lost"
"""Who holds the Lease of a lost node: nobody that is."""
_FOR_EVER, _USUAL = 2**31 - 1, 40
_TOLD_BY_THE_KUBELET = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class NodeStatus(msgspec.Struct):
    conditions: list[Condition] | None = None


class Node(msgspec.Struct):
    """What of a node matters here."""

    metadata: ObjectMeta
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def lost(self) -> bool:
        """Whether it is to be lost."""
        return LOST in (self.metadata.annotations or {})

    @property
    def ready(self) -> str:
        """True, False or Unknown; empty for a node that nobody has looked at yet."""
        return next((c.status for c in self.status.conditions or () if c.type == "Ready"), "")


class LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class Lease(msgspec.Struct):
    metadata: ObjectMeta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


def lease_patch(node: Node, lease: Lease) -> dict[str, Any] | None:
    """The change of a node's Lease that has it lost, or back; None where it is as it has to be."""
    taken = lease.spec.holder_identity == HOLDER
    if node.lost == taken:
        return None
    if node.lost:
        spec: dict[str, Any] = {"holderIdentity": HOLDER, "leaseDurationSeconds": _FOR_EVER}
    else:
        spec = {"holderIdentity": None, "leaseDurationSeconds": _USUAL}
    return {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}


def node_patch(node: Node, now: str) -> dict[str, Any] | None:
    """The change of the status of a lost node, None where it is as it has to be."""
    stale = [c.type for c in node.status.conditions or () if c.type in _TOLD_BY_THE_KUBELET and c.status != "Unknown"]
    if not node.lost or not stale:
        return None
    reason = {"reason": "NodeStatusUnknown", "message": "the kubelet is gone: conformance.grove.io/lost"}
    return {"conditions": [{"type": kind, "status": "Unknown", "lastTransitionTime": now, **reason} for kind in stale]}


def pod_patch(now: str) -> dict[str, Any]:
    """The change of the status of a Ready pod on a lost node. What its containers are like, nobody knows."""
    return {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": now}]}
