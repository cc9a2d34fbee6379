"""The filter for node selectors and node affinity."""

from __future__ import annotations

from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.selectors import selects_node


class NodeAffinity(Plugin):
    """Rejects nodes without the labels or the name that the pod requires."""

    def refusal(self, node: Node) -> str:
        return "" if matches_node(self.pod, node) else "node didn't match Pod's node affinity/selector"


def matches_node(pod: Pod, node: Node) -> bool:
    """Return whether the node has the labels and the name that the pod requires."""
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    if not pod.spec.affinity:
        return True
    required = pod.affinity.required_nodes
    return required is None or selects_node(required, node.metadata.name, labels)
