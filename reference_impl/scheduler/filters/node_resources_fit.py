"""The filter for requested resources and for the number of pods on a node."""

from __future__ import annotations

from collections import defaultdict

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.requests import PODS


class NodeResourcesFit(Plugin):
    """Rejects nodes that lack free resources. For gangs, `Capacity` does the same for many pods at once."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for other, node in state.placed:
            self.update(other, node, 1)

    @property
    def dynamic(self) -> bool:
        return True

    def refusal(self, node: Node) -> str:
        used, allocatable = self._used[node.metadata.name], node.allocatable
        for name, amount in self.pod.requests.items():
            if amount > allocatable.get(name, 0) - used[name]:
                return "Too many pods" if name == PODS else f"Insufficient {name}"
        return ""

    def update(self, other: Pod, node: Node, delta: int) -> None:
        used = self._used[node.metadata.name]
        for name, amount in other.usage.items():
            used[name] += amount * delta
