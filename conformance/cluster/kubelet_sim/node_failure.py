"""Nodes without a kubelet, as the API shows them. Pure.

KWOK plays the nodes without the label conformance.grove.io/lost (`settings`), and the pods on those: it ignores a node
with the label, and every pod that is bound to it, now or later. But KWOK hears of nodes and of pods on two watches, and
may learn of a pod first. Therefore each pod on a failed node gets a condition of the same name, in the same patch that
makes it not Ready, and no stage plays a pod that has it. The node is reported as failed after its pods: once
Ready=Unknown is visible, nothing changes there any more.

The changes that the node controller would write 40 s later are written at once: conditions Unknown, pods not Ready.
Taints and evictions come from the controller manager itself. When the label is removed, KWOK plays the node again, and
its pods once their condition is gone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from conformance.cluster.kubelet_sim.init_wait import LOST, Condition, SimulatedPod
from kube.objects import ObjectMeta

SELECTOR = f"!{LOST}"
"""The nodes that KWOK plays."""
_TOLD_BY_THE_KUBELET = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class NodeStatus(msgspec.Struct):
    """The status of a node as far as this module reads it."""

    conditions: list[Condition] | None = None


class SimulatedNode(msgspec.Struct):
    """A node as far as this module reads it."""

    metadata: ObjectMeta
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def lost(self) -> bool:
        """Return whether the node should be failed."""
        return LOST in (self.metadata.labels or {})


def node_patch(node: SimulatedNode, now: str) -> dict[str, Any] | None:
    """Return the change of the status of a node; None if it is correct already, or KWOK's task."""
    stale = [c.type for c in node.status.conditions or () if c.type in _TOLD_BY_THE_KUBELET and c.status != "Unknown"]
    if not node.lost or not stale:
        return None
    reason = {"reason": "NodeStatusUnknown", "message": f"the kubelet is gone: {LOST}"}
    return {"conditions": [{"type": kind, "status": "Unknown", "lastTransitionTime": now, **reason} for kind in stale]}


def pod_patch(pod: SimulatedPod, lost: bool, now: str) -> dict[str, Any] | None:
    """Return the change of the status of a pod on a node that has failed or not; None if it is correct already. The
    state of containers on a failed node is unknown: their statuses stay."""
    if not lost:
        return {"conditions": [{"type": LOST, "$patch": "delete"}]} if pod.lost else None
    correct = {LOST: pod.lost, "Ready": not pod.ready}
    words = {LOST: "True", "Ready": "False"}
    missing = [{"type": kind, "status": words[kind], "lastTransitionTime": now} for kind in words if not correct[kind]]
    return {"conditions": missing} if missing else None
