"""Required affinity and anti-affinity between pods."""

from __future__ import annotations

from collections import defaultdict

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod

Pair = tuple[str, str]
"""A topology domain, as label key and value."""


class InterPodAffinity(Plugin):
    """Rejects nodes in domains that lack the pods of the pod's affinity terms, that have pods matching its
    anti-affinity terms, or that have pods whose anti-affinity terms match the pod."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._affinity, self._forbidden = pod.near, pod.apart
        self._near: dict[Pair, int] = defaultdict(int)
        self._near_pods = 0
        """The sum of `_near`."""
        self._apart: dict[Pair, int] = defaultdict(int)
        self._kept_off: dict[Pair, int] = defaultdict(int)
        """Domains of pods whose anti-affinity terms match this pod."""
        self._of_itself = bool(self._affinity) and self._near_to(pod)
        for other, node in state.around(pod):
            if self._affinity or self._forbidden or other.apart:
                self.update(other, node, 1)

    @property
    def dynamic(self) -> bool:
        return bool(self._affinity or self._forbidden or any(self._kept_off.values()))

    @property
    def monotone(self) -> bool:
        return not self._affinity

    def refusal(self, node: Node) -> str:
        if self._affinity and self._lonely(node):
            return "node didn't match pod affinity rules"
        labels = node.metadata.labels or {}
        if self._forbidden and any(
            self._apart.get((term.key, labels[term.key]), 0) > 0 for term in self._forbidden if term.key in labels
        ):
            return "node didn't match pod anti-affinity rules"
        if self._kept_off and any(self._kept_off.get(pair, 0) > 0 for pair in labels.items()):
            return "node didn't satisfy existing pods anti-affinity rules"
        return ""

    def update(self, other: Pod, node: Node, delta: int) -> None:
        labels = node.metadata.labels or {}
        if self._affinity and self._near_to(other):
            for term in self._affinity:
                if term.key in labels:
                    self._near[term.key, labels[term.key]] += delta
                    self._near_pods += delta
        for term in self._forbidden:
            if term.key in labels and term.matches(other.metadata, self.state.namespace_labels):
                self._apart[term.key, labels[term.key]] += delta
        for term in other.apart:
            if term.key in labels and term.matches(self.pod.metadata, self.state.namespace_labels):
                self._kept_off[term.key, labels[term.key]] += delta

    def _near_to(self, other: Pod) -> bool:
        """Return whether a pod matches all terms of the affinity."""
        return all(term.matches(other.metadata, self.state.namespace_labels) for term in self._affinity)

    def _lonely(self, node: Node) -> bool:
        labels = node.metadata.labels or {}
        if any(term.key not in labels for term in self._affinity):
            return True
        if all(self._near.get((term.key, labels[term.key]), 0) > 0 for term in self._affinity):
            return False
        # The first pod of a series of pods with affinity to one another may be placed anywhere.
        return not self._of_itself or self._near_pods > 0
