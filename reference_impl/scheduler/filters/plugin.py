"""The common form of filters."""

from __future__ import annotations

from abc import ABC, abstractmethod

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.model import Node, Pod


class Plugin(ABC):
    """A filter for one pod, or for pods that are alike. Its class is named as the plugin of kube-scheduler."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        self.pod, self.state = pod, state

    @property
    def dynamic(self) -> bool:
        """Whether the answer depends on where other pods are."""
        return False

    @abstractmethod
    def refusal(self, node: Node) -> str:
        """The reason why the pod must not be placed on a node; empty if it may be."""

    @property
    def monotone(self) -> bool:
        """Whether a node that is refused stays refused however many more pods are placed."""
        return True

    def update(self, other: Pod, node: Node, count: int) -> None:  # noqa: B027 -- most filters keep no counts
        """Take note of pods that are placed on a node, or removed from it if the count is negative."""
