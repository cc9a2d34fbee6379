"""The filter for pods that name their node."""

from __future__ import annotations

from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node


class NodeName(Plugin):
    """Rejects all nodes except the node that the pod names."""

    def refusal(self, node: Node) -> str:
        if self.pod.spec.node_name in ("", node.metadata.name):
            return ""
        return "node didn't match the requested node name"
