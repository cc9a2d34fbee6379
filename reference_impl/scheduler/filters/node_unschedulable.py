"""The filter for cordoned nodes."""

from __future__ import annotations

from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.filters.taint_toleration import tolerates
from reference_impl.scheduler.model import Node, Taint

CORDON = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
"""A pod that tolerates this taint may be placed on a cordoned node."""


class NodeUnschedulable(Plugin):
    """Rejects cordoned nodes."""

    def refusal(self, node: Node) -> str:
        if not node.spec.unschedulable or tolerates(self.pod, [CORDON]):
            return ""
        return "node was unschedulable"
