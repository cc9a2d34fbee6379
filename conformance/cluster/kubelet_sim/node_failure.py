"""Nodes without a kubelet, as the API shows them. Pure functions.

KWOK simulates nodes without the label conformance.grove.io/lost (`settings`), and the pods on them. It ignores a node
with the label, and all pods that are or will be bound to the node. However, KWOK watches nodes and pods separately, and
may receive a change to a pod first. Therefore each pod on a failed node gets a condition with the same name as the
label, in the same patch that makes the pod not Ready, and no stage applies to a pod with this condition. The node is
reported as failed after its pods: once Ready=Unknown is visible, nothing changes on the node any more.

The changes that the node controller would make 40 s later are made immediately: node conditions become Unknown, pods
become not Ready. Taints and evictions come from the controller manager itself. When the label is removed, KWOK
simulates the node again, and also its pods as soon as their condition is gone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from conformance.cluster.kubelet_sim.init_wait import LOST, Condition, SimulatedPod
from kube.objects import ObjectMeta

SELECTOR = f"!{LOST}"
"""Selects the nodes that KWOK simulates."""
_KUBELET_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class NodeStatus(msgspec.Struct):
    """The fields of a node's status that this module reads."""

    conditions: list[Condition] | None = None
    addresses: list[dict[str, str]] | None = None


class SimulatedNode(msgspec.Struct):
    """The parts of a node that this module reads."""

    metadata: ObjectMeta
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def is_lost(self) -> bool:
        """Return whether the node should be failed."""
        return LOST in (self.metadata.labels or {})

    @property
    def address(self) -> str:
        """Return the internal address of the node; empty if it has none."""
        addresses = {entry.get("type"): entry.get("address", "") for entry in self.status.addresses or ()}
        return addresses.get("InternalIP", "")


def node_patch(node: SimulatedNode, now: str) -> dict[str, Any] | None:
    """Return the change to a node's status; None if the status is already correct, or if KWOK is responsible for it."""
    outdated_types = [
        c.type for c in node.status.conditions or () if c.type in _KUBELET_CONDITIONS and c.status != "Unknown"
    ]
    if not node.is_lost or not outdated_types:
        return None
    reason = {"reason": "NodeStatusUnknown", "message": f"the kubelet is gone: {LOST}"}
    return {
        "conditions": [
            {"type": condition_type, "status": "Unknown", "lastTransitionTime": now, **reason}
            for condition_type in outdated_types
        ]
    }


def pod_patch(pod: SimulatedPod, lost: bool, now: str) -> dict[str, Any] | None:
    """Return the change to the status of a pod; None if the status is already correct. `lost` is whether the pod's node
    has failed. The statuses of containers on a failed node are left unchanged, because their state is unknown."""
    if not lost:
        return {"conditions": [{"type": LOST, "$patch": "delete"}]} if pod.is_lost else None
    is_correct = {LOST: pod.is_lost, "Ready": not pod.is_ready}
    status_by_type = {LOST: "True", "Ready": "False"}
    missing_conditions = [
        {"type": condition_type, "status": status_by_type[condition_type], "lastTransitionTime": now}
        for condition_type in status_by_type
        if not is_correct[condition_type]
    ]
    return {"conditions": missing_conditions} if missing_conditions else None
