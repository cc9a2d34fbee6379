"""The interface of filters."""

from __future__ import annotations

from abc import ABC, abstractmethod

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.model import Node, Pod


class Plugin(ABC):
    """A filter for one pod, or for equal pods. Its class is named after the plugin of kube-scheduler."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        self.pod, self.state = pod, state

    @property
    def dynamic(self) -> bool:
        """Whether the result depends on where other pods are."""
        return False

    @abstractmethod
    def refusal(self, node: Node) -> str:
        """Return the reason why the pod must not be placed on a node, or an empty string if it may be placed there."""

    @property
    def monotone(self) -> bool:
        """Whether a rejected node stays rejected when more pods are placed."""
        return True

    def update(self, other: Pod, node: Node, delta: int) -> None:  # noqa: B027 -- most filters keep no counts
        """Update the filter for pods that are placed on a node, or are removed from the node if `delta` is negative."""
