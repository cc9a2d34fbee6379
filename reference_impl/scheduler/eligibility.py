"""The eligibility of nodes for a pod without regard to other pods: readiness, cordons, taints, node selector and node
affinity."""

from __future__ import annotations

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.feasibility import NODE_FILTERS, refusal
from reference_impl.scheduler.model import Node, Pod

_EMPTY = ClusterState()


def eligible(pod: Pod, node: Node) -> bool:
    """Return whether the node is usable and admits the pod, without regard to other pods."""
    return not ineligibility(pod, node)


def ineligibility(pod: Pod, node: Node) -> str:
    """Return the reason why a node is not eligible for a pod, or an empty string if it is eligible."""
    if pod.decode_error:
        return f"Unknown: {pod.decode_error}"
    if not node.usable:
        return "node is not ready"
    return refusal([plugin(pod, _EMPTY) for plugin in NODE_FILTERS], node)
