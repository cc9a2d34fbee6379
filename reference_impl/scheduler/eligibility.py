"""The eligible nodes of a pod, other pods apart: readiness, cordons, taints, node selector, node affinity."""

from __future__ import annotations

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.feasibility import OF_THE_NODE, refusal
from reference_impl.scheduler.model import Node, Pod

_EMPTY = ClusterState()


def eligible(pod: Pod, node: Node) -> bool:
    """Whether the node is usable and admits the pod, other pods apart."""
    return not ineligibility(pod, node)


def ineligibility(pod: Pod, node: Node) -> str:
    """The reason why a node is not eligible for a pod; empty if it is."""
    if pod.unreadable:
        return f"Unknown: {pod.unreadable}"
    if not node.usable:
        return "node is not ready"
    return refusal([plugin(pod, _EMPTY) for plugin in OF_THE_NODE], node)
