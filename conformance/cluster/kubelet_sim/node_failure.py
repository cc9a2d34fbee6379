"""Nodes whose kubelet is gone, as far as the API shows it. Pure.

KWOK plays the nodes without the label conformance.grove.io/lost (`settings`), and the pods on those: a node with it is
none of KWOK's, nor is any pod that is bound to it, now or later. But KWOK hears of nodes and of pods on two watches, so
that it may learn of a pod first. Therefore each pod on a lost node gets a condition of the same name, in the very patch
that makes it not Ready, and no stage plays a pod that has it. The node is declared lost after its pods: who has seen
Ready=Unknown can rely on it that nothing moves there any more.

What the node controller would write 40 s later is written at once: conditions Unknown, pods not Ready. Taints and
evictions are the controller-manager's own. When the label goes, KWOK has the node again, and the pods as soon as their
condition has gone.
"""

from __future__ import annotations

from typing import Any

import msgspec

from conformance.cluster.kubelet_sim.init_wait import LOST, Condition, Pod
from kube.objects import ObjectMeta

SELECTOR = f"!{LOST}"
"""The nodes that KWOK plays."""
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
        return LOST in (self.metadata.labels or {})


def node_patch(node: Node, now: str) -> dict[str, Any] | None:
    """The change of the status of a node, None where it is as it has to be, or KWOK's."""
    stale = [c.type for c in node.status.conditions or () if c.type in _TOLD_BY_THE_KUBELET and c.status != "Unknown"]
    if not node.lost or not stale:
        return None
    reason = {"reason": "NodeStatusUnknown", "message": f"the kubelet is gone: {LOST}"}
    return {"conditions": [{"type": kind, "status": "Unknown", "lastTransitionTime": now, **reason} for kind in stale]}


def pod_patch(pod: Pod, lost: bool, now: str) -> dict[str, Any] | None:
    """The change of the status of a pod on a node that is lost, or is not; None where it is as it has to be. What the
    containers on a lost node are like nobody knows: their statuses stay."""
    if not lost:
        return {"conditions": [{"type": LOST, "$patch": "delete"}]} if pod.lost else None
    there = {LOST: pod.lost, "Ready": not pod.ready}
    words = {LOST: "True", "Ready": "False"}
    missing = [{"type": kind, "status": words[kind], "lastTransitionTime": now} for kind in words if not there[kind]]
    return {"conditions": missing} if missing else None
